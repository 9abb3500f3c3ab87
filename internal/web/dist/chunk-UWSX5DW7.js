<<<<<<<< HEAD:internal/web/dist/chunk-UWSX5DW7.js
import{h as t,j as a}from"./chunk-L4H5IHJI.js";var r;function l(){return r??=a("/ui/a/calls.json").then(e=>JSON.parse(e??"[]")).catch(e=>{throw r=void 0,e}),r}var s=e=>t(e.id,e.method,e.path,e.scope,e.args.filter(n=>n.in==="query").map(n=>n.name));export{l as a,s as b};
========
import{h as t,j as a}from"./chunk-K5552SP6.js";var r;function l(){return r??=a("/ui/a/calls.json").then(e=>JSON.parse(e??"[]")).catch(e=>{throw r=void 0,e}),r}var s=e=>t(e.id,e.method,e.path,e.scope,e.args.filter(n=>n.in==="query").map(n=>n.name));export{l as a,s as b};
>>>>>>>> h-stripe:internal/web/dist/chunk-TWI3JVGZ.js
