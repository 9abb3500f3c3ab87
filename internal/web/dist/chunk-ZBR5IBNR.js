<<<<<<<< HEAD:internal/web/dist/chunk-ZBR5IBNR.js
import{g as i}from"./chunk-HWTSAWKF.js";import{b as n}from"./chunk-NI2RPYZK.js";import{Fa as e}from"./chunk-T4KEA2QJ.js";import{jsx as a}from"./vendor-V4P4C4WP.js";function d(o){return a(n,{call:e,submit:"Re-arm",said:"Armed again. The next round begins soon.",done:o.done,read:r=>({id:o.id,reason:String(r.get("reason")??"")}),children:r=>a(i,{name:"reason",label:"Reason",hint:"goes to the audit log",wrong:r,focus:o.focus})})}export{d as a};
========
import{g as i}from"./chunk-WGQ5REWM.js";import{b as n}from"./chunk-WFKLXGQ4.js";import{Ga as e}from"./chunk-FCC3OU6X.js";import{jsx as a}from"./vendor-V4P4C4WP.js";function d(o){return a(n,{call:e,submit:"Re-arm",said:"Armed again. The next round begins soon.",done:o.done,read:r=>({id:o.id,reason:String(r.get("reason")??"")}),children:r=>a(i,{name:"reason",label:"Reason",hint:"goes to the audit log",wrong:r,focus:o.focus})})}export{d as a};
>>>>>>>> h-40:internal/web/dist/chunk-KHZT6QWC.js
