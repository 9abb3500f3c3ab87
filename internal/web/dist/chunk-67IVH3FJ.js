<<<<<<<< HEAD:internal/web/dist/chunk-67IVH3FJ.js
import{u as t}from"./chunk-R77RZXCC.js";import{jsx as n}from"./vendor-V4P4C4WP.js";function r(i){return n(t,{call:i.call,input:{invitationId:i.id},confirm:"Withdraw it? The link stops working.",done:()=>(i.done(),"Withdrawn."),children:"Withdraw"})}export{r as a};
========
import{u as t}from"./chunk-GOHH5LV3.js";import{jsx as n}from"./vendor-V4P4C4WP.js";function r(i){return n(t,{call:i.call,input:{invitationId:i.id},confirm:"Withdraw it? The link stops working.",done:()=>(i.done(),"Withdrawn."),children:"Withdraw"})}export{r as a};
>>>>>>>> h-house:internal/web/dist/chunk-ZMVMIYM6.js
