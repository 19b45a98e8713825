import{y as t}from"./chunk.OROH5F4P.js";function i(e){let r=t(e.replace(/[\t\n\r]/g," "));return/^[\w@%+=:,./-]+$/.test(r)?r:`'${r.replace(/'/g,"'\\''")}'`}export{i as a};
