<<<<<<<< HEAD:internal/web/dist/chunk-JT5G4ZXM.js
<<<<<<<< HEAD:internal/web/dist/chunk-JT5G4ZXM.js
<<<<<<<< HEAD:internal/web/dist/chunk-JT5G4ZXM.js
<<<<<<<< HEAD:internal/web/dist/chunk-JT5G4ZXM.js
<<<<<<<< HEAD:internal/web/dist/chunk-JT5G4ZXM.js
import{Fa as d,a as P,c as x,e as S,g as F,i as L,m as A}from"./chunk-L4H5IHJI.js";var f=class{lastId="";rest="";cr=!1;take(t){this.cr&&t.startsWith(`
========
import{Fa as d,a as P,c as x,e as S,g as F,i as L,m as A}from"./chunk-K5552SP6.js";var f=class{lastId="";rest="";cr=!1;take(t){this.cr&&t.startsWith(`
>>>>>>>> h-stripe:internal/web/dist/chunk-W4FKAVJE.js
========
import{Ea as d,a as P,c as x,e as S,g as F,i as L,m as A}from"./chunk-XLDBUWZG.js";var f=class{lastId="";rest="";cr=!1;take(t){this.cr&&t.startsWith(`
>>>>>>>> h-ask:internal/web/dist/chunk-UC3MQV6U.js
========
import{Ea as d,a as P,c as x,e as S,g as F,i as L,m as A}from"./chunk-YFX5B43M.js";var f=class{lastId="";rest="";cr=!1;take(t){this.cr&&t.startsWith(`
>>>>>>>> h-donation:internal/web/dist/chunk-4CTSUKQ3.js
========
import{Ea as d,a as P,c as x,e as S,g as F,i as L,m as A}from"./chunk-5RJDMQST.js";var f=class{lastId="";rest="";cr=!1;take(t){this.cr&&t.startsWith(`
>>>>>>>> h-ssh:internal/web/dist/chunk-URONUXJP.js
========
import{Ma as d,a as P,c as x,e as S,g as F,i as L,o as A}from"./chunk-URKWUVFM.js";var f=class{lastId="";rest="";cr=!1;take(t){this.cr&&t.startsWith(`
>>>>>>>> h-pages:internal/web/dist/chunk-56FIEYT5.js
`)&&(t=t.slice(1)),this.cr=t.endsWith("\r"),this.rest+=t.replace(/\r\n?/g,`
`);let e=[],n=0;for(let r=0;(r=this.rest.indexOf(`

`,n))>=0;n=r+2){let i=this.frame(this.rest.slice(n,r));i&&e.push(i)}return this.rest=this.rest.slice(n),e}frame(t){let e={id:this.lastId,event:"message",data:""},n=!1;for(let r of t.split(`
`)){if(!r||r.startsWith(":"))continue;let i=r.indexOf(":"),o=i<0?r:r.slice(0,i),c=i<0?"":r.slice(i+(r[i+1]===" "?2:1));o==="data"?(e.data+=(n?`
`:"")+c,n=!0):o==="event"?e.event=c:o==="id"&&(this.lastId=e.id=c)}return n?e:void 0}};async function R(s,t,e,n,r){let i={Accept:"text/event-stream",...F()};n&&(i["Last-Event-ID"]=n);let o=await fetch(s,{headers:i,signal:e,credentials:"same-origin",cache:"no-store"});if(o.status===204)return;if(!o.ok||!o.body)throw o.status===401&&(S.value=!0),L(o,await o.json().catch(()=>({})));r();let c=new f;c.lastId=n;let a=o.body.pipeThrough(new TextDecoderStream).getReader();for(;;){let{done:l,value:I}=await a.read();if(l)return c.lastId;let w=c.take(I);w.length&&t(w)}}async function p(s,t,e,n){let r=500,i=n.from??"";for(;!e.aborted;){let o=!1,c=0;try{let a=await R(s,l=>{r=500,n.resume&&(i=l[l.length-1].id||i),o||=n.ended?.(l)??!1,t(l)},e,i,()=>n.state?.("live"));if(o||a===void 0)return n.state?.("ended");n.resume&&(i=a)}catch(a){if(e.aborted)return;if(o)return n.state?.("ended");if(a instanceof P){if(a.status<500&&a.status!==429&&a.status!==401)return n.state?.("refused",a.message);c=a.after*1e3}}n.state?.("retrying"),await new Promise(a=>setTimeout(a,Math.max(c,r*(.7+Math.random()*.6)))),r=Math.min(r*2,15e3)}}import{computed as T,effect as q,signal as k}from"./vendor-V4P4C4WP.js";var W=A("/v1/streams"),_=["tasks","asks","plans","blockers","prs","approvals","ci","runners","sessions","repos","notifications","escalations","groups","budgets"],h=k("retrying"),y=k({gap:!1}),j=k(Date.now()),m=!1,u=!1;function Z(){y.value={gap:!0}}function O(){y.value={gap:u},u=!0}function g(s){(s==="live"||h.peek()==="live")&&(j.value=Date.now()),u||=m||s!=="live",m=s==="live",h.value=s}function $(){let s=y.peek();return t=>{let e=t!==s&&!t.gap;return s=t,e}}var v=new Map;function J(s,t){let e=v.get(s);return e||v.set(s,e=new Set),e.add(t),()=>{e.delete(t)}}function ee(s,t){return J(s,e=>{let n=e.filter(r=>!r.there);n.length&&t(n)})}var b=[],E=0;function M(){E=0;let s=new Map;for(let t of b){let e=s.get(t.topic);e?e.push(t):s.set(t.topic,[t])}b=[];for(let[t,e]of s)for(let n of v.get(t)??[])n(e)}function C(s){b.push(...s),E||=document.hidden?window.setTimeout(M,200):requestAnimationFrame(M)}function D(s,t){let e={};return n=>{let r=[];for(let i of n)if(i.event==="ready")e={...JSON.parse(i.data).snapshot},s();else if(i.event==="patch"){let o=JSON.parse(i.data),c=e[o.topic];c&&(e[o.topic]=c-1,o.there=!0),r.push(o)}r.length&&t(r)}}var N=T(()=>d.value&&(d.value.user?.id??"")+"-"+(x.value||d.value.account.id));function te(){q(()=>{if(!N.value)return;m=u=!1;let s=new AbortController;return B(N.value,s.signal),()=>s.abort()})}function B(s,t){let e=W({topics:_.join(",")});if(!navigator.locks)return z(e,t);let n="yardmaster-live-"+s,r=new BroadcastChannel(n),i=!1,o=a=>{"patches"in a?C(a.patches):"link"in a?g(a.link):"opened"in a?O():i&&r.postMessage({link:h.peek()})},c=a=>{o(a),r.postMessage(a)};r.onmessage=a=>o(a.data),t.addEventListener("abort",()=>r.close()),r.postMessage({ask:!0}),navigator.locks.request(n,{signal:t},()=>{i=!0;let a=D(()=>c({opened:!0}),l=>c({patches:l}));return p(e,a,t,{state:l=>c({link:l})})}).catch(()=>{})}function z(s,t){let e,n=()=>{if(document.hidden||t.aborted){e?.abort(),e=void 0,g("paused");return}e||(e=new AbortController,p(s,D(O,C),e.signal,{state:g}))};document.addEventListener("visibilitychange",n),t.addEventListener("abort",()=>{document.removeEventListener("visibilitychange",n),e?.abort()}),n()}export{p as a,h as b,y as c,j as d,Z as e,$ as f,J as g,ee as h,te as i};
