<<<<<<<< HEAD:internal/web/dist/chunk-L5I3OZRX.js
import{e as o,f as e}from"./chunk-W3I5VPIV.js";import{jsx as f}from"./vendor-V4P4C4WP.js";function s(r){let t=r.of;return f(e,{of:t.state,noun:"pr",say:t.draft&&t.state==="open"?"draft":o(t.state)})}export{s as a};
========
import{e as o,f as e}from"./chunk-5YR7JILB.js";import{jsx as f}from"./vendor-V4P4C4WP.js";function s(r){let t=r.of;return f(e,{of:t.state,noun:"pr",say:t.draft&&t.state==="open"?"draft":o(t.state)})}export{s as a};
>>>>>>>> h-stripe:internal/web/dist/chunk-TZRMYMLU.js
