import{r}from"./chunk.CZNLRTBO.js";var l=5e3,s=200,d=e=>({ownerId:e.userId,workspaceId:e.workspaceId}),a=e=>`/det/models/${encodeURIComponent(e)}`,m=e=>[...new Set(e.split(`
`).map(o=>o.trim()).filter(Boolean))];async function p(e,o,t){let n={...e?{name:e}:{},...o?{}:{archived:!1},sortBy:"SORT_BY_LAST_UPDATED_TIME",orderBy:"ORDER_BY_DESC",limit:s};return(await r("GET /api/v1/models",{query:n,signal:t})).models}async function c(e,o){let t=await r("GET /api/v1/models/{modelName}/versions",{path:{modelName:e},query:{sortBy:"SORT_BY_VERSION",orderBy:"ORDER_BY_DESC",limit:s},signal:o});return{model:t.model,versions:t.modelVersions}}function g(e,o){return`from determined.experimental import client

model = client.get_model(${JSON.stringify(e)})
path = model.get_version(${o}).checkpoint.download()
`}export{l as a,s as b,d as c,a as d,m as e,p as f,c as g,g as h};
