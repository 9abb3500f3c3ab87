<<<<<<<< HEAD:internal/web/dist/chunk-RM7CFIH4.js
import{e as o,f as e}from"./chunk-R77RZXCC.js";import{jsx as f}from"./vendor-V4P4C4WP.js";function s(r){let t=r.of;return f(e,{of:t.state,noun:"pr",say:t.draft&&t.state==="open"?"draft":o(t.state)})}export{s as a};
========
import{e as o,f as e}from"./chunk-GOHH5LV3.js";import{jsx as f}from"./vendor-V4P4C4WP.js";function s(r){let t=r.of;return f(e,{of:t.state,noun:"pr",say:t.draft&&t.state==="open"?"draft":o(t.state)})}export{s as a};
>>>>>>>> h-house:internal/web/dist/chunk-SEYKDFS3.js
