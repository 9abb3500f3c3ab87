<<<<<<<< HEAD:internal/web/dist/chunk-JYIL3RML.js
import{h as r}from"./chunk-LBR33G34.js";var a=r("auth.reauth","POST","/auth/reauth","per-request",[]);function p(t){return Object.assign(async(e,n)=>{let{password:s,...o}=e;return await a(/^\d{6}$/.test(s)?{code:s}:{password:s},n),t(o,n)},{id:t.id,scope:t.scope,method:t.method,path:t.path})}export{p as a};
========
import{h as r}from"./chunk-QWSKD3VA.js";var a=r("auth.reauth","POST","/auth/reauth","per-request",[]);function p(t){return Object.assign(async(e,n)=>{let{password:s,...o}=e;return await a(/^\d{6}$/.test(s)?{code:s}:{password:s},n),t(o,n)},{id:t.id,scope:t.scope,method:t.method,path:t.path})}export{p as a};
>>>>>>>> h-know:internal/web/dist/chunk-LR3ELBLO.js
