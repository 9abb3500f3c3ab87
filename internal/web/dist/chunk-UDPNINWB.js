<<<<<<<< HEAD:internal/web/dist/chunk-UDPNINWB.js
import{m as r}from"./chunk-T4KEA2QJ.js";var a=r("auth.reauth","POST","/auth/reauth","per-request",[]);function p(t){return Object.assign(async(e,n)=>{let{password:s,...o}=e;return await a(/^\d{6}$/.test(s)?{code:s}:{password:s},n),t(o,n)},{id:t.id,scope:t.scope,method:t.method,path:t.path})}export{p as a};
========
import{n as r}from"./chunk-FCC3OU6X.js";var a=r("auth.reauth","POST","/auth/reauth","per-request",[]);function p(t){return Object.assign(async(e,n)=>{let{password:s,...o}=e;return await a(/^\d{6}$/.test(s)?{code:s}:{password:s},n),t(o,n)},{id:t.id,scope:t.scope,method:t.method,path:t.path})}export{p as a};
>>>>>>>> h-40:internal/web/dist/chunk-BCQYCQ6S.js
