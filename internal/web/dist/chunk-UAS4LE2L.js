<<<<<<<< HEAD:internal/web/dist/chunk-UAS4LE2L.js
import{h as t,k as a}from"./chunk-LBR33G34.js";var r;function l(){return r??=a("/ui/a/calls.json").then(e=>JSON.parse(e??"[]")).catch(e=>{throw r=void 0,e}),r}var s=e=>t(e.id,e.method,e.path,e.scope,e.args.filter(n=>n.in==="query").map(n=>n.name));export{l as a,s as b};
========
import{h as t,k as a}from"./chunk-QWSKD3VA.js";var r;function l(){return r??=a("/ui/a/calls.json").then(e=>JSON.parse(e??"[]")).catch(e=>{throw r=void 0,e}),r}var s=e=>t(e.id,e.method,e.path,e.scope,e.args.filter(n=>n.in==="query").map(n=>n.name));export{l as a,s as b};
>>>>>>>> h-know:internal/web/dist/chunk-ILYYGNJ7.js
