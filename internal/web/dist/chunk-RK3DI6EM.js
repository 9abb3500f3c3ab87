<<<<<<<< HEAD:internal/web/dist/chunk-Y6GW3MJG.js
import{b as o,c as e}from"./chunk-5GZCR7FB.js";import{jsx as f}from"./vendor-V4P4C4WP.js";function s(r){let t=r.of;return f(e,{of:t.state,noun:"pr",say:t.draft&&t.state==="open"?"draft":o(t.state)})}export{s as a};
========
import{b as o,c as e}from"./chunk-I5JFQ2OP.js";import{jsx as f}from"./vendor-V4P4C4WP.js";function s(r){let t=r.of;return f(e,{of:t.state,noun:"pr",say:t.draft&&t.state==="open"?"draft":o(t.state)})}export{s as a};
>>>>>>>> h-e:internal/web/dist/chunk-RK3DI6EM.js
