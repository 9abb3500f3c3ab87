<<<<<<<< HEAD:internal/web/dist/chunk-4ZALFTUL.js
import{b as p}from"./chunk-UABWEA4L.js";import{Ja as s,lb as i}from"./chunk-T4KEA2QJ.js";var a=20;async function u(o){let e=[],r;for(let n=0;n<a;n++){let t=await o(r);if(e.push(...t.data),!t.next_cursor)return{data:e};r=t.next_cursor}return{data:e,next_cursor:r??null}}var c=o=>i(s)?u(e=>s({cursor:e,per_page:100},o?{signal:o}:void 0)):Promise.resolve({data:[]}),P=()=>p("repos",c);export{u as a,c as b,P as c};
========
import{b as p}from"./chunk-LKGEPSSN.js";import{Ka as s,kb as i}from"./chunk-FCC3OU6X.js";var a=20;async function u(o){let e=[],r;for(let n=0;n<a;n++){let t=await o(r);if(e.push(...t.data),!t.next_cursor)return{data:e};r=t.next_cursor}return{data:e,next_cursor:r??null}}var c=o=>i(s)?u(e=>s({cursor:e,per_page:100},o?{signal:o}:void 0)):Promise.resolve({data:[]}),P=()=>p("repos",c);export{u as a,c as b,P as c};
>>>>>>>> h-40:internal/web/dist/chunk-M23CU3CU.js
