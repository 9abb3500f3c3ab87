<<<<<<<< HEAD:internal/web/dist/chunk-ENLFM5RW.js
import{g as i}from"./chunk-HUJUWVYJ.js";import{b as n}from"./chunk-CGNJKR2X.js";import{Ga as e}from"./chunk-5GZCR7FB.js";import{jsx as a}from"./vendor-V4P4C4WP.js";function d(o){return a(n,{call:e,submit:"Re-arm",said:"Armed again. The next round begins soon.",done:o.done,read:r=>({id:o.id,reason:String(r.get("reason")??"")}),children:r=>a(i,{name:"reason",label:"Reason",hint:"goes to the audit log",wrong:r,focus:o.focus})})}export{d as a};
========
import{g as i}from"./chunk-GKWP6H2P.js";import{b as n}from"./chunk-XI2WO77G.js";import{Ia as e}from"./chunk-I5JFQ2OP.js";import{jsx as a}from"./vendor-V4P4C4WP.js";function d(o){return a(n,{call:e,submit:"Re-arm",said:"Armed again. The next round begins soon.",done:o.done,read:r=>({id:o.id,reason:String(r.get("reason")??"")}),children:r=>a(i,{name:"reason",label:"Reason",hint:"goes to the audit log",wrong:r,focus:o.focus})})}export{d as a};
>>>>>>>> h-e:internal/web/dist/chunk-L7FIUNNM.js
