/* What of a configuration's data the caller may not read. */
#include "datapaths.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define NOBODY 65534

static json_t *paths_of(const char *config, const char *hparams)
{
    JSON_OWN env = json_object();
    if (config)
        json_set(env, "DET_EXPERIMENT_CONFIG", json_string(config));
    if (hparams)
        json_set(env, "DET_HPARAMS", json_string(hparams));
    return datapaths_of(env);
}

static void test_what_is_looked_at(void **state)
{
    JSON_OWN found =
        paths_of("{\"data\": {\"a\": \"/x\", \"b\": [{\"c\": \"/y\"}, \"no\"], \"n\": 3, "
                 "\"root\": \"/\"}, \"bind_mounts\": [{\"host_path\": \"/z\"}], "
                 "\"checkpoint_storage\": {\"host_path\": \"/not/data\"}}",
                 "{\"dir\": \"/h\", \"lr\": 0.1}");
    det_cleanup(freep) char *text = json_text(found);
    assert_string_equal(text, "[[\"data.a\",\"/x\"],[\"data.b[0].c\",\"/y\"],"
                              "[\"hyperparameters.dir\",\"/h\"],[\"bind_mounts\",\"/z\"]]");
}

static void test_nothing_to_look_at(void **state)
{
    static const char *const configs[] = {NULL, "", "{", "[]", "{\"data\": null}"};
    for (size_t i = 0; i < DET_ARRAY_LEN(configs); i++) {
        JSON_OWN found = paths_of(configs[i], "\"/x\"[");
        assert_int_equal(json_array_size(found), 0);
    }
}

static void test_so_many(void **state)
{
    det_cleanup(buf_finish) struct buf config = BUF_INIT;
    buf_add_str(&config, "{\"data\": {\"files\": [\"/0\"");
    for (int i = 1; i < 2 * DATAPATHS_MAX; i++)
        buf_addf(&config, ", \"/%d\"", i);
    buf_add_str(&config, "]}}");
    JSON_OWN found = paths_of(buf_str(&config), NULL);
    assert_int_equal(json_array_size(found), DATAPATHS_MAX);
}

/* As another user, who may enter the folder above, but neither of these two. */
static void tell_as_nobody(const char *root, struct buf *out)
{
    det_cleanup(freep) char *config =
        det_asprintf("{\"data\": {\"shut\": \"%s/shut/data\", \"file\": \"%s/file\", \"open\": "
                     "\"%s\", \"none\": \"%s/none\"}}",
                     root, root, root, root);
    JSON_OWN paths = paths_of(config, NULL);
    const uid_t me = geteuid();
    if (me == 0)
        assert_int_equal(seteuid(NOBODY), 0);
    datapaths_tell(paths, "the account ann (uid 7)", out);
    if (me == 0)
        assert_int_equal(seteuid(me), 0);
}

static void test_closed(void **state)
{
    char root[] = "/tmp/det-datapaths-XXXXXX";
    det_cleanup(buf_finish) struct buf said = BUF_INIT;
    assert_non_null(mkdtemp(root));
    det_cleanup(freep) char *shut = det_asprintf("%s/shut", root);
    det_cleanup(freep) char *file = det_asprintf("%s/file", root);
    FILE *f = fopen(file, "we");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(mkdir(shut, 0) | chmod(file, 0) | chmod(root, 0755), 0);
    tell_as_nobody(root, &said);
    assert_int_equal(rmdir(shut) | unlink(file) | rmdir(root), 0);
    det_cleanup(freep) char *expected = det_asprintf(
        "data.shut: %s/data cannot be read: this task runs as the account ann (uid 7), which may "
        "not enter %s; to its code it looks as if nothing were there\n"
        "data.file: %s cannot be read: this task runs as the account ann (uid 7), which may not "
        "use it\n",
        shut, shut, file);
    assert_string_equal(buf_str(&said), expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_looked_at),
        cmocka_unit_test(test_nothing_to_look_at),
        cmocka_unit_test(test_so_many),
        cmocka_unit_test(test_closed),
    };
    return cmocka_run_group_tests_name("datapaths", tests, NULL, NULL);
}
