/* det project: a project is named by its workspace and its own name. */
#include "cli.h"
#include "experiment.h"
#include "place.h"

#include <inttypes.h>
#include <stdio.h>

static struct {
    bool all, yes;
    const char *description, *new_name; /* NULL: not given */
} o;

int place_project(struct cli *c, const char *workspace, const char *name, json_t **ret,
                  struct det_err *err)
{
    JSON_OWN w = NULL;
    JSON_OWN answer = NULL;
    int rc = place_workspace(c, workspace, &w, err);
    if (rc < 0)
        return rc;
    char *word det_cleanup(freep) = cli_escaped(name);
    rc = cli_get(c, &answer, err, "/workspaces/%" PRId64 "/projects?name=%s", json_int(w, "id", 0),
                 word);
    json_t *found = json_array_get(json_arr(answer, "projects"), 0);
    if (rc == 0 && (!found || !*name))
        rc = det_fail(err, DET_ENOENT,
                      "project \"%.80s\" not found in workspace \"%.80s\"; det workspace "
                      "list-projects shows all",
                      name, workspace);
    if (rc == 0)
        *ret = json_incref(found);
    return rc;
}

static int find_project(struct cli *c, json_t **ret, struct det_err *err)
{
    return place_project(c, cli_arg(c, 0), cli_arg(c, 1), ret, err);
}

static int create_project(struct cli *c, struct det_err *err)
{
    JSON_OWN w = NULL;
    JSON_OWN answer = NULL;
    JSON_OWN body = json_make("{s:s, s:s}", "name", cli_arg(c, 1), "description",
                              o.description ? o.description : "");
    if (place_workspace(c, cli_arg(c, 0), &w, err) < 0)
        return CLI_FAILED;
    char *path det_cleanup(freep) =
        det_asprintf("/workspaces/%" PRId64 "/projects", json_int(w, "id", 0));
    if (cli_call(c, "POST", path, body, &answer, err) < 0)
        return CLI_FAILED;
    const json_t *p = json_obj(answer, "project");
    if (!cli_print_json(c, p))
        printf("Created project %" PRId64 "\n", json_int(p, "id", 0));
    return 0;
}

static int describe_project(struct cli *c, struct det_err *err)
{
    JSON_OWN p = NULL;
    if (find_project(c, &p, err) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, p))
        return 0;
    printf("project %" PRId64 "  %s%s\n", json_int(p, "id", 0), json_str(p, "name", ""),
           json_flag(p, "archived", false) ? ", archived" : "");
    printf("  workspace    %s\n", json_str(p, "workspaceName", ""));
    printf("  description  %s\n", json_str(p, "description", ""));
    printf("  owner        %s\n", json_str(p, "username", ""));
    printf("  experiments  %" PRId64 ", %" PRId64 " of them active\n",
           json_int(p, "numExperiments", 0), json_int(p, "numActiveExperiments", 0));
    return 0;
}

static int list_experiments(struct cli *c, struct det_err *err)
{
    JSON_OWN p = NULL;
    JSON_OWN answer = NULL;
    if (find_project(c, &p, err) < 0 ||
        cli_get(c, &answer, err, "/experiments?limit=-1&projectId=%" PRId64 "%s",
                json_int(p, "id", 0), o.all ? "" : "&archived=false") < 0)
        return CLI_FAILED;
    experiment_print_list(c, json_object_get(answer, "experiments"));
    return 0;
}

/* What is said of it, and nothing else. */
static int edit_project(struct cli *c, struct det_err *err)
{
    JSON_OWN p = NULL;
    JSON_OWN answer = NULL;
    JSON_OWN body = json_object();
    if (!o.new_name && !o.description) {
        det_fail(err, DET_EINVAL, "a change is needed: --new_name NAME, --description TEXT");
        return CLI_USAGE;
    }
    if (o.new_name)
        json_set(body, "name", json_string(o.new_name));
    if (o.description)
        json_set(body, "description", json_string(o.description));
    if (find_project(c, &p, err) < 0)
        return CLI_FAILED;
    char *path det_cleanup(freep) = det_asprintf("/projects/%" PRId64, json_int(p, "id", 0));
    if (cli_call(c, "PATCH", path, body, &answer, err) < 0)
        return CLI_FAILED;
    const json_t *now = json_obj(answer, "project");
    if (!cli_print_json(c, now))
        fprintf(stderr, "project %s changed\n", json_str(now, "name", ""));
    return 0;
}

static int set_archived(struct cli *c, bool on, struct det_err *err)
{
    JSON_OWN p = NULL;
    if (find_project(c, &p, err) < 0)
        return CLI_FAILED;
    return place_switch(c, "project", p, on, err);
}

static int archive_project(struct cli *c, struct det_err *err)
{
    return set_archived(c, true, err);
}

static int unarchive_project(struct cli *c, struct det_err *err)
{
    return set_archived(c, false, err);
}

static int delete_project(struct cli *c, struct det_err *err)
{
    JSON_OWN p = NULL;
    if (find_project(c, &p, err) < 0)
        return CLI_FAILED;
    return place_delete(c, "project", p, o.yes, err);
}

static const struct opt create_opts[] = {
    {"description", 0, OPT_STR, &o.description, "TEXT", "what it is for"},
    {0},
};
static const struct opt delete_opts[] = {
    {"yes", 'y', OPT_FLAG, &o.yes, NULL, "do not ask"},
    {0},
};
static const struct opt edit_opts[] = {
    {"new_name", 0, OPT_STR, &o.new_name, "NAME", "its name from now on"},
    {"description", 0, OPT_STR, &o.description, "TEXT", "what it is for"},
    {0},
};
static const struct opt list_opts[] = {
    {"all", 'a', OPT_FLAG, &o.all, NULL, "archived ones too"},
    {0},
};
static const struct verb verbs[] = {
    {"create", NULL, "WORKSPACE NAME", "a new one", create_opts, create_project},
    {"describe", NULL, "WORKSPACE NAME", "one project", NULL, describe_project},
    {"edit", NULL, "WORKSPACE NAME", "another name or description", edit_opts, edit_project},
    {"list-experiments", NULL, "WORKSPACE NAME", "its experiments", list_opts, list_experiments},
    {"archive", NULL, "WORKSPACE NAME", "nothing is added to it any more", NULL, archive_project},
    {"unarchive", NULL, "WORKSPACE NAME", "use it again", NULL, unarchive_project},
    {"delete", NULL, "WORKSPACE NAME", "if nothing is in it", delete_opts, delete_project},
    {0},
};

const struct noun noun_project = {
    "project", "p", NULL, "projects: create, edit, archive, delete, their experiments", verbs};
