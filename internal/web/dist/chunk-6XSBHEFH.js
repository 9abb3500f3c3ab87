<<<<<<<< HEAD:internal/web/dist/chunk-JCXFMY3M.js
import{n as t,q as a}from"./chunk-5GZCR7FB.js";var r;function l(){return r??=a("/ui/a/calls.json").then(e=>JSON.parse(e??"[]")).catch(e=>{throw r=void 0,e}),r}var s=e=>t(e.id,e.method,e.path,e.scope,e.args.filter(n=>n.in==="query").map(n=>n.name));export{l as a,s as b};
========
import{n as t,q as a}from"./chunk-I5JFQ2OP.js";var r;function l(){return r??=a("/ui/a/calls.json").then(e=>JSON.parse(e??"[]")).catch(e=>{throw r=void 0,e}),r}var s=e=>t(e.id,e.method,e.path,e.scope,e.args.filter(n=>n.in==="query").map(n=>n.name));export{l as a,s as b};
>>>>>>>> h-e:internal/web/dist/chunk-6XSBHEFH.js
