function t(e){if(e==null)return"\u2013";let n=Number(e);return Number.isFinite(n)?"$"+n.toFixed(n!==0&&Math.abs(n)<.1?4:2):"\u2013"}export{t as a};
