import{z as t}from"./chunk.7H7FMNBM.js";function i(e){let r=t(e.replace(/[\t\n\r]/g," "));return/^[\w@%+=:,./-]+$/.test(r)?r:`'${r.replace(/'/g,"'\\''")}'`}export{i as a};
