function t(n){if(n==null)return"\u2013";let e=Number(n);return Number.isFinite(e)?"$"+e.toFixed(e!==0&&Math.abs(e)<.1?4:2):"\u2013"}var r=n=>n.toLocaleString("en");export{t as a,r as b};
