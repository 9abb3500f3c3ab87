<<<<<<<< HEAD:internal/web/dist/chunk-IM3IVVDJ.js
import{b as p}from"./chunk-RU2THUAS.js";import{Ka as s,nb as i}from"./chunk-5GZCR7FB.js";var a=20;async function u(o){let e=[],r;for(let n=0;n<a;n++){let t=await o(r);if(e.push(...t.data),!t.next_cursor)return{data:e};r=t.next_cursor}return{data:e,next_cursor:r??null}}var c=o=>i(s)?u(e=>s({cursor:e,per_page:100},o?{signal:o}:void 0)):Promise.resolve({data:[]}),P=()=>p("repos",c);export{u as a,c as b,P as c};
========
import{b as p}from"./chunk-AU3NTKB6.js";import{Ma as s,ob as i}from"./chunk-I5JFQ2OP.js";var a=20;async function u(o){let e=[],r;for(let n=0;n<a;n++){let t=await o(r);if(e.push(...t.data),!t.next_cursor)return{data:e};r=t.next_cursor}return{data:e,next_cursor:r??null}}var c=o=>i(s)?u(e=>s({cursor:e,per_page:100},o?{signal:o}:void 0)):Promise.resolve({data:[]}),P=()=>p("repos",c);export{u as a,c as b,P as c};
>>>>>>>> h-e:internal/web/dist/chunk-E7ACVGW3.js
