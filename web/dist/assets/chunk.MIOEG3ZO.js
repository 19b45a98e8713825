import{a as i,b as s,c as a}from"./chunk.RPHCICHU.js";import{r as n}from"./chunk.ENITRM4D.js";var y=5e3,f=e=>({ownerId:e.userId,workspaceId:e.workspaceId}),M=e=>`/det/models/${encodeURIComponent(e)}`,_=e=>[...new Set(e.split(`
`).map(o=>o.trim()).filter(Boolean))];async function u(e,o,r,t){let l={...e?{name:e}:{},...o?{}:{archived:!1},sortBy:"SORT_BY_LAST_UPDATED_TIME",orderBy:"ORDER_BY_DESC"};return a(r,async d=>{let{models:m,pagination:p}=await n("GET /api/v1/models",{query:{...l,...d},signal:t});return s(m,p)})}async function x(e,o,r){let t=await n("GET /api/v1/models/{modelName}/versions",{path:{modelName:e},query:{sortBy:"SORT_BY_VERSION",orderBy:"ORDER_BY_DESC",limit:i(o)},signal:r});return{model:t.model,versions:s(t.modelVersions,t.pagination)}}function O(e,o){return`from determined.experimental import client

model = client.get_model(${JSON.stringify(e)})
path = model.get_version(${o}).checkpoint.download()
`}export{y as a,f as b,M as c,_ as d,u as e,x as f,O as g};
