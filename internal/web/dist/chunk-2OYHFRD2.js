var s=new Set,o=(n,t)=>{s.add(n+":"+t)},e=(n,t)=>s.has(n+":"+t);export{o as a,e as b};
