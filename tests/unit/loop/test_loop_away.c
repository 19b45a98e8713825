/* A checkpoint store that is away: never taken for a damaged one, never written to in its place. */
#include "fake_master.h"
#include "fake_trial.h"
#include "fsx.h"
#include "mem.h"
#include "storage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[] = "/tmp/det-away-XXXXXX";
static char *root, *aside, *note;
static struct fake f;
static struct fake_master m;
static struct det_err err;

static void configure(const char *id)
{
    struct det_loop_config *c = &f.config;
    c->managed = true;
    c->trial_id = 7;
    c->run_id = 1;
    c->task_id = det_strdup("3.x");
    c->allocation_id = det_strdup("3.x.1");
    c->searcher_metric = det_strdup("val_loss");
    c->checkpoint_storage = json_make("{s:s, s:s}", "type", "shared_fs", "host_path", root);
    c->http = fake_master_http(&m);
    c->observer.training = NULL;
    c->store_id = det_strdup(id);
    f.n_callbacks = 0;
    m.lengths[0] = 4;
}

static int setup(void **state)
{
    char id[UUID_STR_MAX];
    memcpy(base + sizeof base - 7, "XXXXXX", 6);
    if (!mkdtemp(base))
        return -1;
    root = det_asprintf("%s/store", base);
    aside = det_asprintf("%s/aside", base);
    note = det_asprintf("%s/" STORAGE_AWAY_FILE, base);
    setenv("DET_RUN_DIR", base, 1);
    fake_init(&f);
    fake_master_init(&m);
    if (storage_make(root, NULL, id, &err) < 0)
        return -1;
    configure(id);
    return 0;
}

static int teardown(void **state)
{
    fake_finish(&f);
    fake_master_finish(&m);
    free(root);
    free(aside);
    free(note);
    return fsx_remove_tree(AT_FDCWD, base, &err);
}

static void unmount(void)
{
    assert_int_equal(rename(root, aside), 0);
    assert_int_equal(mkdir(root, 0755), 0);
}

static void mount_again(void)
{
    assert_int_equal(rmdir(root), 0); /* fails unless it is empty still */
    assert_int_equal(rename(aside, root), 0);
}

static void note_says(const char *what)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    assert_int_equal(fsx_read_file(AT_FDCWD, note, 4096, &b, &err), 0);
    assert_non_null(strstr(buf_str(&b), root));
    assert_non_null(strstr(buf_str(&b), what));
}

/* The first run leaves a checkpoint; the second finds the store away. */
static void it_does_not_begin_anew(void **state)
{
    assert_int_equal(fake_run(&f, &err), 0);
    det_cleanup(freep) char *uuid = fake_checkpoint(root);
    det_cleanup(freep) char *list =
        det_asprintf("{\"checkpoints\":[{\"uuid\":\"%s\",\"state\":\"STATE_COMPLETED\","
                     "\"metadata\":{\"steps_completed\":4}}]}",
                     uuid);
    m.checkpoints = list;
    f.config.latest_checkpoint = det_strdup(uuid);
    f.config.steps_completed = 4;
    buf_clear(&f.trace);
    unmount();
    assert_int_equal(fake_run(&f, &err), DET_EUNAVAIL);
    assert_non_null(strstr(err.text, root));
    assert_string_equal(buf_str(&f.trace), "destroy"); /* not one batch */
    note_says("away");
    mount_again();
    assert_int_equal(fake_run(&f, &err), 0);
    assert_null(strstr(buf_str(&f.trace), "b0"));
}

static bool comes_back;

/* Training holds: the store comes back now, if it is to. */
int __wrap_usleep(useconds_t us);

int __wrap_usleep(useconds_t us)
{
    if (comes_back)
        mount_again();
    comes_back = false;
    return 0;
}

static double goes_away(int64_t b)
{
    if (b == 1)
        unmount();
    return 0;
}

static void training_holds_until_it_is_back(void **state)
{
    f.loss = goes_away;
    comes_back = true;
    assert_int_equal(fake_run(&f, &err), 0);
    assert_false(comes_back);
    assert_int_equal(fake_checkpoints(root), 1);
    assert_int_equal(access(note, F_OK), -1);
}

static void it_does_not_hold_for_ever(void **state)
{
    f.loss = goes_away;
    f.config.store_hold_ms = 1;
    assert_int_equal(fake_run(&f, &err), DET_EUNAVAIL);
    assert_non_null(strstr(err.text, "mount it there"));
    note_says("mount it there");
    mount_again();
    assert_int_equal(fake_checkpoints(root), 0);
}

/* Somebody has to make room: that costs the trial no restart. */
static void a_full_one_is_no_fault_of_the_trial(void **state)
{
    f.fail_save = DET_EIO;
    f.fail_save_text = ": state_dict.pth";
    f.fail_save_sys = ENOSPC;
    assert_int_equal(fake_run(&f, &err), DET_EIO);
    note_says("make room");
}

static void what_else_fails_is(void **state)
{
    f.fail_save = DET_EIO;
    f.fail_save_text = ": vocabulary.txt";
    f.fail_save_sys = ENOENT;
    assert_int_equal(fake_run(&f, &err), DET_EIO);
    assert_int_equal(access(note, F_OK), -1);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(it_does_not_begin_anew),    T(training_holds_until_it_is_back),
        T(it_does_not_hold_for_ever), T(a_full_one_is_no_fault_of_the_trial),
        T(what_else_fails_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
