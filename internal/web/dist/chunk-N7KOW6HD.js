<<<<<<<< HEAD:internal/web/dist/chunk-N7KOW6HD.js
import{u as t}from"./chunk-OHCEETDH.js";import{jsx as n}from"./vendor-V4P4C4WP.js";function r(i){return n(t,{call:i.call,input:{invitationId:i.id},confirm:"Withdraw it? The link stops working.",done:()=>(i.done(),"Withdrawn."),children:"Withdraw"})}export{r as a};
========
import{u as t}from"./chunk-QDRHGQO6.js";import{jsx as n}from"./vendor-V4P4C4WP.js";function r(i){return n(t,{call:i.call,input:{invitationId:i.id},confirm:"Withdraw it? The link stops working.",done:()=>(i.done(),"Withdrawn."),children:"Withdraw"})}export{r as a};
>>>>>>>> h-know:internal/web/dist/chunk-QDQ5WDWN.js
