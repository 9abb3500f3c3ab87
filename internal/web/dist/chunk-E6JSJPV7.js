<<<<<<<< HEAD:internal/web/dist/chunk-E6JSJPV7.js
import{q as t}from"./chunk-IIDQ6UIN.js";import{jsx as n}from"./vendor-V4P4C4WP.js";function r(i){return n(t,{call:i.call,input:{invitationId:i.id},confirm:"Withdraw it? The link stops working.",done:()=>(i.done(),"Withdrawn."),children:"Withdraw"})}export{r as a};
========
import{q as t}from"./chunk-PAHJ4F5U.js";import{jsx as n}from"./vendor-V4P4C4WP.js";function r(i){return n(t,{call:i.call,input:{invitationId:i.id},confirm:"Withdraw it? The link stops working.",done:()=>(i.done(),"Withdrawn."),children:"Withdraw"})}export{r as a};
>>>>>>>> h-e:internal/web/dist/chunk-JNVNOXGS.js
