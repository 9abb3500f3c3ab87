<<<<<<<< HEAD:internal/web/dist/chunk-6X2B42TQ.js
import{e as o,f as e}from"./chunk-OHCEETDH.js";import{jsx as f}from"./vendor-V4P4C4WP.js";function s(r){let t=r.of;return f(e,{of:t.state,noun:"pr",say:t.draft&&t.state==="open"?"draft":o(t.state)})}export{s as a};
========
import{e as o,f as e}from"./chunk-QDRHGQO6.js";import{jsx as f}from"./vendor-V4P4C4WP.js";function s(r){let t=r.of;return f(e,{of:t.state,noun:"pr",say:t.draft&&t.state==="open"?"draft":o(t.state)})}export{s as a};
>>>>>>>> h-know:internal/web/dist/chunk-BELQHVEO.js
