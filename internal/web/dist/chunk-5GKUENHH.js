<<<<<<<< HEAD:internal/web/dist/chunk-5GKUENHH.js
import{h as t,k as a}from"./chunk-7XBNGCAQ.js";var r;function l(){return r??=a("/ui/a/calls.json").then(e=>JSON.parse(e??"[]")).catch(e=>{throw r=void 0,e}),r}var s=e=>t(e.id,e.method,e.path,e.scope,e.args.filter(n=>n.in==="query").map(n=>n.name));export{l as a,s as b};
========
import{h as t,k as a}from"./chunk-4MWC6BWL.js";var r;function l(){return r??=a("/ui/a/calls.json").then(e=>JSON.parse(e??"[]")).catch(e=>{throw r=void 0,e}),r}var s=e=>t(e.id,e.method,e.path,e.scope,e.args.filter(n=>n.in==="query").map(n=>n.name));export{l as a,s as b};
>>>>>>>> h-house:internal/web/dist/chunk-6JCQZOD7.js
