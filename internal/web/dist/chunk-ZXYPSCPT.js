<<<<<<<< HEAD:internal/web/dist/chunk-ZXYPSCPT.js
import{b as p}from"./chunk-GIBHCXC3.js";import{Ia as s,ib as i}from"./chunk-AHVPG4SC.js";var a=20;async function u(o){let e=[],r;for(let n=0;n<a;n++){let t=await o(r);if(e.push(...t.data),!t.next_cursor)return{data:e};r=t.next_cursor}return{data:e,next_cursor:r??null}}var c=o=>i(s)?u(e=>s({cursor:e,per_page:100},o?{signal:o}:void 0)):Promise.resolve({data:[]}),P=()=>p("repos",c);export{u as a,c as b,P as c};
========
import{b as p}from"./chunk-2BBW4NOS.js";import{Ba as s,ab as i}from"./chunk-F2QDA6IK.js";var a=20;async function u(o){let e=[],r;for(let n=0;n<a;n++){let t=await o(r);if(e.push(...t.data),!t.next_cursor)return{data:e};r=t.next_cursor}return{data:e,next_cursor:r??null}}var c=o=>i(s)?u(e=>s({cursor:e,per_page:100},o?{signal:o}:void 0)):Promise.resolve({data:[]}),P=()=>p("repos",c);export{u as a,c as b,P as c};
>>>>>>>> h-oper:internal/web/dist/chunk-7DYBXE4X.js
