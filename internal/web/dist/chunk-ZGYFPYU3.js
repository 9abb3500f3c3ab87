<<<<<<<< HEAD:internal/web/dist/chunk-ZGYFPYU3.js
import{m as t,p as a}from"./chunk-T4KEA2QJ.js";var r;function l(){return r??=a("/ui/a/calls.json").then(e=>JSON.parse(e??"[]")).catch(e=>{throw r=void 0,e}),r}var s=e=>t(e.id,e.method,e.path,e.scope,e.args.filter(n=>n.in==="query").map(n=>n.name));export{l as a,s as b};
========
import{n as t,q as a}from"./chunk-FCC3OU6X.js";var r;function l(){return r??=a("/ui/a/calls.json").then(e=>JSON.parse(e??"[]")).catch(e=>{throw r=void 0,e}),r}var s=e=>t(e.id,e.method,e.path,e.scope,e.args.filter(n=>n.in==="query").map(n=>n.name));export{l as a,s as b};
>>>>>>>> h-40:internal/web/dist/chunk-IIWMLJAE.js
