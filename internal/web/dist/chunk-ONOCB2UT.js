<<<<<<<< HEAD:internal/web/dist/chunk-ONOCB2UT.js
import{b as o,c as e}from"./chunk-T4KEA2QJ.js";import{jsx as f}from"./vendor-V4P4C4WP.js";function s(r){let t=r.of;return f(e,{of:t.state,noun:"pr",say:t.draft&&t.state==="open"?"draft":o(t.state)})}export{s as a};
========
import{b as o,c as e}from"./chunk-FCC3OU6X.js";import{jsx as f}from"./vendor-V4P4C4WP.js";function s(r){let t=r.of;return f(e,{of:t.state,noun:"pr",say:t.draft&&t.state==="open"?"draft":o(t.state)})}export{s as a};
>>>>>>>> h-40:internal/web/dist/chunk-2N6AIFUH.js
