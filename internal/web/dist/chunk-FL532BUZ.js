<<<<<<<< HEAD:internal/web/dist/chunk-FL532BUZ.js
import{h as r}from"./chunk-HCJ446JW.js";var a=r("auth.reauth","POST","/auth/reauth","per-request",[]);function p(t){return Object.assign(async(e,n)=>{let{password:s,...o}=e;return await a(/^\d{6}$/.test(s)?{code:s}:{password:s},n),t(o,n)},{id:t.id,scope:t.scope,method:t.method,path:t.path})}export{p as a};
========
import{h as r}from"./chunk-6YL22T4V.js";var a=r("auth.reauth","POST","/auth/reauth","per-request",[]);function p(t){return Object.assign(async(e,n)=>{let{password:s,...o}=e;return await a(/^\d{6}$/.test(s)?{code:s}:{password:s},n),t(o,n)},{id:t.id,scope:t.scope,method:t.method,path:t.path})}export{p as a};
>>>>>>>> h-know:internal/web/dist/chunk-S25C3LXY.js
