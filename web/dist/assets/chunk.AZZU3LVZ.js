function i(n){let t=n==null?"":String(n);return typeof n=="string"&&/^[=+\-@\t\r]/.test(t)&&(t="'"+t),/[",\n\r]/.test(t)?`"${t.replace(/"/g,'""')}"`:t}function s(n,t){return[n,...t].map(e=>e.map(i).join(",")).join(`\r
`)+`\r
`}function c(n,t,e="text/csv"){let o=URL.createObjectURL(typeof t=="string"?new Blob([t],{type:`${e};charset=utf-8`}):t),r=document.createElement("a");r.href=o,r.download=n,r.click(),URL.revokeObjectURL(o)}export{s as a,c as b};
