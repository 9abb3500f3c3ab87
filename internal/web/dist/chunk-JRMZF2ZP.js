<<<<<<<< HEAD:internal/web/dist/chunk-HGHZFN3M.js
import{i,mb as s}from"./chunk-5GZCR7FB.js";var o=new Map,u=100,c=e=>e+" "+(i.peek()||s.peek()?.account.id);function f(e,t,n){o.delete(e),o.set(e,{...n,of:c(t)}),o.size>u&&o.delete(o.keys().next().value)}function l(e,t,n,p){let r=g(e,t);r&&f(e,t,{...r,mark:n,at:p,own:!0,seek:!0})}function g(e,t){let n=o.get(e);return n?.of===c(t)?n:void 0}export{f as a,l as b,g as c};
========
import{i,nb as s}from"./chunk-I5JFQ2OP.js";var o=new Map,u=100,c=e=>e+" "+(i.peek()||s.peek()?.account.id);function f(e,t,n){o.delete(e),o.set(e,{...n,of:c(t)}),o.size>u&&o.delete(o.keys().next().value)}function l(e,t,n,p){let r=g(e,t);r&&f(e,t,{...r,mark:n,at:p,own:!0,seek:!0})}function g(e,t){let n=o.get(e);return n?.of===c(t)?n:void 0}export{f as a,l as b,g as c};
>>>>>>>> h-e:internal/web/dist/chunk-JRMZF2ZP.js
