<<<<<<<< HEAD:internal/web/dist/chunk-WMGGL6CF.js
import{n as r}from"./chunk-5GZCR7FB.js";var a=r("auth.reauth","POST","/auth/reauth","per-request",[]);function p(t){return Object.assign(async(e,n)=>{let{password:s,...o}=e;return await a(/^\d{6}$/.test(s)?{code:s}:{password:s},n),t(o,n)},{id:t.id,scope:t.scope,method:t.method,path:t.path})}export{p as a};
========
import{n as r}from"./chunk-I5JFQ2OP.js";var a=r("auth.reauth","POST","/auth/reauth","per-request",[]);function p(t){return Object.assign(async(e,n)=>{let{password:s,...o}=e;return await a(/^\d{6}$/.test(s)?{code:s}:{password:s},n),t(o,n)},{id:t.id,scope:t.scope,method:t.method,path:t.path})}export{p as a};
>>>>>>>> h-e:internal/web/dist/chunk-X63X6NEB.js
