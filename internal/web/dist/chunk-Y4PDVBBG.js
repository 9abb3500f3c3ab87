<<<<<<<< HEAD:internal/web/dist/chunk-Y4PDVBBG.js
import{h as r}from"./chunk-L4H5IHJI.js";var a=r("auth.reauth","POST","/auth/reauth","per-request",[]);function p(t){return Object.assign(async(e,n)=>{let{password:s,...o}=e;return await a(/^\d{6}$/.test(s)?{code:s}:{password:s},n),t(o,n)},{id:t.id,scope:t.scope,method:t.method,path:t.path})}export{p as a};
========
import{h as r}from"./chunk-K5552SP6.js";var a=r("auth.reauth","POST","/auth/reauth","per-request",[]);function p(t){return Object.assign(async(e,n)=>{let{password:s,...o}=e;return await a(/^\d{6}$/.test(s)?{code:s}:{password:s},n),t(o,n)},{id:t.id,scope:t.scope,method:t.method,path:t.path})}export{p as a};
>>>>>>>> h-stripe:internal/web/dist/chunk-P32FN54W.js
