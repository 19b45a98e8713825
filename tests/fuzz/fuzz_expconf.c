/*
 * An experiment configuration from any bytes. What is accepted must be a fixed point, have a view,
 * and be a space that can be sampled; what is refused must say why in valid UTF-8.
 */
#include "expconf.h"
#include "hparam.h"
#include "yamljson.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok)
        abort();
}

static void check_text(const char *text)
{
    JSON_OWN j = json_string(text); /* NULL unless UTF-8 */
    require(j != NULL && *text);
}

static void check_stored(const json_t *config, const struct expconf_defaults *d)
{
    det_cleanup(freep) char *text = json_text(config);
    JSON_OWN again = NULL;
    require(expconf_parse(text, strlen(text), d, &again, NULL, NULL) == 0);
    det_cleanup(freep) char *text_again = json_text(again);
    require(strcmp(text, text_again) == 0);

    struct expconf view;
    require(expconf_view(config, &view, NULL) == 0);
    struct mt19937 r;
    mt19937_seed(&r, view.experiment_seed);
    JSON_OWN sample = hparam_sample(view.hyperparameters, &r);
    require(json_object_size(sample) == json_object_size(view.hyperparameters));
    if (view.searcher == EXPCONF_GRID && view.max_trials > 0)
        json_decref(hparam_grid_point(view.hyperparameters, (size_t)view.max_trials - 1));
    expconf_finish(&view);
}

static void check_override(const char *text, size_t len)
{
    det_cleanup(freep) char *assignment = det_strndup(text, len);
    JSON_OWN config = json_make("{s:{s:i}}", "a", "b", 1);
    det_ignore(expconf_override(config, assignment, NULL), "whatever it says, nothing breaks");
}

static void check_partial(const char *text, size_t len)
{
    JSON_OWN raw = NULL;
    JSON_OWN low = NULL;
    if (yamljson_parse(text, len, &raw, NULL) < 0 || expconf_partial(raw, &low, NULL) < 0)
        return;
    JSON_OWN high = json_deep_copy(low);
    expconf_merge(high, low);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct expconf_defaults d = {.wall_s = 1, .name_seed = 2};
    const char *text = (const char *)data;
    struct det_err err = {0};
    JSON_OWN config = NULL;
    if (expconf_parse(text, size, &d, &config, NULL, &err) == 0)
        check_stored(config, &d);
    else
        check_text(err.text);
    check_partial(text, size);
    if (size && data[0] != '{')
        check_override(text, size);
    return 0;
}
