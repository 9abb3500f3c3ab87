<<<<<<<< HEAD:internal/web/dist/chunk-XIEJNF7E.js
import{b as o,c as e}from"./chunk-AHVPG4SC.js";import{jsx as f}from"./vendor-V4P4C4WP.js";function s(r){let t=r.of;return f(e,{of:t.state,noun:"pr",say:t.draft&&t.state==="open"?"draft":o(t.state)})}export{s as a};
========
import{e as o,f as e}from"./chunk-BPXDAZ7G.js";import{jsx as f}from"./vendor-V4P4C4WP.js";function s(r){let t=r.of;return f(e,{of:t.state,noun:"pr",say:t.draft&&t.state==="open"?"draft":o(t.state)})}export{s as a};
>>>>>>>> h-oper:internal/web/dist/chunk-XS6I53UH.js
