import{r as s}from"./chunk.CZNLRTBO.js";var l=5e3,n=200,d=e=>`/det/models/${encodeURIComponent(e)}`,m=e=>[...new Set(e.split(`
`).map(o=>o.trim()).filter(Boolean))];async function a(e,o,t){let r={...e?{name:e}:{},...o?{}:{archived:!1},sortBy:"SORT_BY_LAST_UPDATED_TIME",orderBy:"ORDER_BY_DESC",limit:n};return(await s("GET /api/v1/models",{query:r,signal:t})).models}async function p(e,o){let t=await s("GET /api/v1/models/{modelName}/versions",{path:{modelName:e},query:{sortBy:"SORT_BY_VERSION",orderBy:"ORDER_BY_DESC",limit:n},signal:o});return{model:t.model,versions:t.modelVersions}}function c(e,o){return`from determined.experimental import client

model = client.get_model(${JSON.stringify(e)})
path = model.get_version(${o}).checkpoint.download()
`}export{l as a,n as b,d as c,m as d,a as e,p as f,c as g};
