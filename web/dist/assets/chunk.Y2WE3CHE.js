import{v as t}from"./chunk.PLLO4RRD.js";function i(e){let r=t(e.replace(/[\t\n\r]/g," "));return/^[\w@%+=:,./-]+$/.test(r)?r:`'${r.replace(/'/g,"'\\''")}'`}export{i as a};
