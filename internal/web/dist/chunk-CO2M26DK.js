<<<<<<<< HEAD:internal/web/dist/chunk-CO2M26DK.js
import{q as t}from"./chunk-QOJWHVLD.js";import{jsx as n}from"./vendor-V4P4C4WP.js";function r(i){return n(t,{call:i.call,input:{invitationId:i.id},confirm:"Withdraw it? The link stops working.",done:()=>(i.done(),"Withdrawn."),children:"Withdraw"})}export{r as a};
========
import{q as t}from"./chunk-FTCSKS6E.js";import{jsx as n}from"./vendor-V4P4C4WP.js";function r(i){return n(t,{call:i.call,input:{invitationId:i.id},confirm:"Withdraw it? The link stops working.",done:()=>(i.done(),"Withdrawn."),children:"Withdraw"})}export{r as a};
>>>>>>>> h-40:internal/web/dist/chunk-WBTBAPVY.js
