<<<<<<<< HEAD:internal/web/dist/chunk-C35TU4TM.js
import{b as p}from"./chunk-VWOLYBS6.js";import{Ya as i,za as s}from"./chunk-7XBNGCAQ.js";var a=20;async function u(o){let e=[],r;for(let n=0;n<a;n++){let t=await o(r);if(e.push(...t.data),!t.next_cursor)return{data:e};r=t.next_cursor}return{data:e,next_cursor:r??null}}var c=o=>i(s)?u(e=>s({cursor:e,per_page:100},o?{signal:o}:void 0)):Promise.resolve({data:[]}),P=()=>p("repos",c);export{u as a,c as b,P as c};
========
import{b as p}from"./chunk-U6A3QCBC.js";import{$a as i,Aa as s}from"./chunk-4MWC6BWL.js";var a=20;async function u(o){let e=[],r;for(let n=0;n<a;n++){let t=await o(r);if(e.push(...t.data),!t.next_cursor)return{data:e};r=t.next_cursor}return{data:e,next_cursor:r??null}}var c=o=>i(s)?u(e=>s({cursor:e,per_page:100},o?{signal:o}:void 0)):Promise.resolve({data:[]}),P=()=>p("repos",c);export{u as a,c as b,P as c};
>>>>>>>> h-house:internal/web/dist/chunk-4X7VMR4M.js
