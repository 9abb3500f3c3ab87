<<<<<<<< HEAD:internal/web/dist/chunk-O6BGE5MS.js
import{u as t}from"./chunk-W3I5VPIV.js";import{jsx as n}from"./vendor-V4P4C4WP.js";function r(i){return n(t,{call:i.call,input:{invitationId:i.id},confirm:"Withdraw it? The link stops working.",done:()=>(i.done(),"Withdrawn."),children:"Withdraw"})}export{r as a};
========
import{u as t}from"./chunk-5YR7JILB.js";import{jsx as n}from"./vendor-V4P4C4WP.js";function r(i){return n(t,{call:i.call,input:{invitationId:i.id},confirm:"Withdraw it? The link stops working.",done:()=>(i.done(),"Withdrawn."),children:"Withdraw"})}export{r as a};
>>>>>>>> h-stripe:internal/web/dist/chunk-JVGNGUYB.js
