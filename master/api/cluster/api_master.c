/* The master itself: what it is, its settings. */
#include "api_handlers.h"
#include "api_util.h"
#include "masterconf.h"
#include "shell.h"

void api_info(struct shell *sh, struct http_req *req)
{
    api_reply_json(
        req, json_make("{s:s,s:s,s:s,s:s,s:{s:b,s:b,s:s},s:[]}", "version", DET_VERSION,
                       "master_id", sh->master_id, "cluster_id", sh->cluster_id, "cluster_name",
                       sh->conf->cluster_name ? sh->conf->cluster_name : "", "telemetry", "enabled",
                       0, "otel_enabled", 0, "otel_endpoint", "", "sso_providers"));
}

void api_get_master(struct shell *sh, struct http_req *req)
{
    json_t *j = json_make("{s:s,s:s,s:s,s:s}", "version", DET_VERSION, "masterId", sh->master_id,
                          "clusterId", sh->cluster_id, "clusterName",
                          sh->conf->cluster_name ? sh->conf->cluster_name : "");
    json_t *rest =
        json_make("{s:b,s:[],s:s,s:s,s:s,s:b,s:s,s:[],s:b,s:b}", "telemetryEnabled", 0,
                  "ssoProviders", "externalLoginUri", "", "externalLogoutUri", "", "branding",
                  "determined", "rbacEnabled", 1, "product", "PRODUCT_UNSPECIFIED",
                  "featureSwitches", "userManagementEnabled", 1, "strictJobQueueControl", 0);
    json_object_update_new(j, rest);
    api_reply_json(req, j);
}

void api_get_telemetry(struct shell *sh, struct http_req *req)
{
    http_reply(req, 200, "{\"enabled\":false,\"segmentKey\":\"\"}");
}

void api_get_master_config(struct shell *sh, struct http_req *req)
{
    api_reply_json(req, json_make("{s:o}", "config", masterconf_json(sh->conf)));
}
