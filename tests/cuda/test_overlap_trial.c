/* A trial whose gradients are averaged beside its backward pass, by two ranks on two emulated
 * devices. Instead of NCCL's mean each rank halves what it has, on the stream that it is asked for
 * on: what comes out must be what the same after the pass gives, to the last bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm_device.h"
#include "cuda_impl.h"
#include "engine.h"
#include "fsx.h"
#include "mem.h"
#include "ranks.h"
#include "trial_context.h"
#include "trial_loop.h"

enum { RECORDS = 24, BATCH = 2, BATCHES = 6, WIDTH = 16, WEIGHTS = 2 * WIDTH * WIDTH };

/* What a hook does besides, or leaves out. */
enum odd { ODD_NOTHING, ODD_TWO_PASSES, ODD_PLAIN_PASS, ODD_NO_STEP, ODD_LOOKS, ODD_ZEROES };

static char dir[] = "/tmp/det-overlap-XXXXXX";
static enum odd odd;
static int asked;      /* means in the run */
static int fails_at;   /* the mean that fails, from 1; 0: none */
static int64_t passes; /* aggregation_frequency */
static float weights[WEIGHTS];
static struct det_device *device; /* of the trial's engine */

/* ---- instead of comm_device.c ---- */

int __wrap_comm_device_open(struct comm *control, int index, struct comm_device **ret,
                            struct det_err *err);
int __wrap_comm_device_open(struct comm *control, int index, struct comm_device **ret,
                            struct det_err *err)
{
    *ret = (struct comm_device *)&asked;
    return 0;
}

void __wrap_comm_device_close(struct comm_device *d);
void __wrap_comm_device_close(struct comm_device *d)
{
}

int __wrap_comm_device_allreduce_mean_f32(struct comm_device *d, float *v, size_t n, void *stream,
                                          struct det_err *err);
int __wrap_comm_device_allreduce_mean_f32(struct comm_device *d, float *v, size_t n, void *stream,
                                          struct det_err *err)
{
    const struct det_backend *b;
    int index;
    struct det_stream s = {.device = device, .native = stream};
    struct det_tensor t = {.refs = 1, .ndim = 1, .dims = {(int64_t)n}, .strides = {1}, .numel = n};
    struct det_call c = {.kernel = DET_KERNEL_AFFINE, .in = {&t}, .out = {&t}, .a.scale = 0.5};
    t.data = (char *)v;
    if (++asked == fails_at)
        return det_fail(err, DET_EPEER, "rank 1 is gone");
    int rc = det_backend_find("cuda", &b, &index, err);
    return rc < 0 ? rc : b->kernels[DET_KERNEL_AFFINE](&s, &c, err);
}

int __wrap_comm_device_wait(struct comm_device *d, void *stream, struct det_err *err);
int __wrap_comm_device_wait(struct comm_device *d, void *stream, struct det_err *err)
{
    return 0; /* what the engine is asked for next waits for it by an event */
}

/* ---- the trial ---- */

struct two_layers {
    struct det_module *net;
    struct det_optim *sgd;
};

static void create(void *self, struct det_trial_context *ctx)
{
    struct two_layers *t = self;
    struct det_engine *e = det_trial_engine(ctx);
    device = e->device;
    t->net = det_trial_wrap_model(
        ctx, det_nn_sequential(e, det_nn_linear(e, WIDTH, WIDTH), det_nn_linear(e, WIDTH, WIDTH)));
    t->sgd = det_trial_wrap_optimizer(ctx, det_sgd(t->net, .lr = 0.1, .momentum = 0.9));
}

static struct det_data_loader *loader(void *self, struct det_trial_context *ctx)
{
    float x[RECORDS * WIDTH];
    for (int i = 0; i < RECORDS * WIDTH; i++)
        x[i] = (float)(i % 7) / 7;
    struct det_dataset *ds = det_dataset_create(RECORDS, det_trial_err(ctx));
    det_dataset_add(ds, "x", DET_F32, 1, (int64_t[]){WIDTH}, x, det_trial_err(ctx));
    return det_data_loader(ds, det_trial_err(ctx), .batch_size = BATCH);
}

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *m)
{
    struct two_layers *t = self;
    struct det_engine *e = det_trial_engine(ctx);
    struct det_err err;
    for (int pass = 0; pass < (odd == ODD_TWO_PASSES ? 2 : 1); pass++) {
        struct det_tensor *out = det_forward(t->net, det_batch_tensor(batch, "x"));
        det_trial_backward(ctx, det_mean(e, det_mul(e, out, out)));
    }
    if (odd == ODD_PLAIN_PASS)
        det_backward(e, det_mean(e, det_forward(t->net, det_batch_tensor(batch, "x"))));
    if (odd == ODD_ZEROES)
        det_optim_zero_grad(t->sgd);
    if (odd == ODD_LOOKS)
        det_clip_grad_norm(t->net, 1);
    if (odd != ODD_NO_STEP)
        det_trial_step_optimizer(ctx, t->sgd, .clip_norm = 0.5);
    for (int i = 0; i < 2; i++) {
        const char *const name[] = {"0.weight", "1.weight"};
        det_ignore(det_tensor_read(det_module_tensor(t->net, name[i]), weights + i * WIDTH * WIDTH,
                                   sizeof weights / 2, &err),
                   "they would differ");
    }
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *m)
{
    det_metrics_f64(m, "val", 1);
}

static const struct det_trial_type type = {.det_api_version = DET_API_VERSION,
                                           .self_bytes = sizeof(struct two_layers),
                                           .create = create,
                                           .build_training_data_loader = loader,
                                           .build_validation_data_loader = loader,
                                           .train_batch = train_batch,
                                           .evaluate_batch = evaluate_batch};

static int train(int rank, int size, int port, struct det_err *err)
{
    struct det_loop_config c = LOOP_CONFIG_INIT;
    c.max_length = BATCHES;
    c.reporting_period.n = BATCHES;
    c.policy = LOOP_POLICY_NONE;
    c.checkpoint_dir = det_strdup(dir);
    c.ranks = ranks_options(rank, size, port);
    c.aggregation_frequency = passes;
    asked = 0;
    memset(weights, 0, sizeof weights);
    struct trial_run *r = trial_run_create(&type);
    struct det_loop_trial client = trial_run_client(r);
    int rc = loop_run(&c, &client, err);
    trial_run_destroy(r);
    loop_config_finish(&c);
    return rc;
}

/* Each of the two weights and biases is a part, and the marks are one. */
static int equal_rank(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    float after[WEIGHTS];
    unsetenv("DET_OVERLAP_MIB");
    RANK_CHECK(train(rank, size, port, &err) == 0);
    RANK_CHECK(asked == BATCHES / passes);
    memcpy(after, weights, sizeof after);
    RANK_CHECK(after[0] != 0 && after[0] == after[0]);
    setenv("DET_OVERLAP_MIB", "0.00001", 1);
    RANK_CHECK(train(rank, size, port, &err) == 0);
    RANK_CHECK(asked == (4 + 1) * BATCHES / passes);
    RANK_CHECK(memcmp(after, weights, sizeof after) == 0);
    return 0;
}

static void test_weights_are_those_of_a_mean_after_the_pass(void **state)
{
    for (passes = 1; passes <= 3; passes++)
        for (int early = 0; early < 2; early++) {
            setenv("EMULATED_ORDER", early ? "early" : "late", 1);
            ranks_pass(2, equal_rank, NULL, 120000);
        }
    unsetenv("EMULATED_ORDER");
}

/* What the run of both ranks ends with. */
static int refused_rank(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    RANK_CHECK(train(rank, size, port, &err) < 0);
    RANK_CHECK(strstr(err.text, arg) != NULL);
    return 0;
}

static void refuse(const char *mib, enum odd what, char *text)
{
    passes = 1;
    odd = what;
    setenv("DET_OVERLAP_MIB", mib, 1);
    ranks_pass(2, refused_rank, text, 120000);
    odd = ODD_NOTHING;
}

static void test_what_cannot_be_beside_it_is_refused(void **state)
{
    refuse("1", ODD_TWO_PASSES, "a second backward pass before the step");
    refuse("1", ODD_PLAIN_PASS, "a second backward pass: gradients are being averaged");
    refuse("1", ODD_ZEROES, "det_optim_zero_grad: gradients are being averaged");
    refuse("1", ODD_NO_STEP, "no det_trial_step_optimizer() after det_trial_backward()");
    refuse("1", ODD_LOOKS, "being averaged over the ranks");
}

static void test_what_is_no_size_is_refused(void **state)
{
    refuse("25MiB", ODD_NOTHING, "DET_OVERLAP_MIB is \"25MiB\"");
    refuse("-1", ODD_NOTHING, "DET_OVERLAP_MIB is \"-1\"");
    refuse("nan", ODD_NOTHING, "DET_OVERLAP_MIB is \"nan\"");
}

/* The parts would be others on each rank. */
static int other_rank(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    char text[64];
    if (rank == 1 && !arg)
        unsetenv("DET_OVERLAP_MIB");
    else
        setenv("DET_OVERLAP_MIB", rank == 1 ? arg : "2", 1);
    snprintf(text, sizeof text, "DET_OVERLAP_MIB is %g on rank %d and",
             rank == 0 ? 2
             : arg     ? 1
                       : 0.,
             rank);
    RANK_CHECK(train(rank, size, port, &err) < 0);
    RANK_CHECK(strstr(err.text, text) != NULL);
    RANK_CHECK(asked == 0);
    return 0;
}

static void test_ranks_with_other_sizes_are_refused(void **state)
{
    passes = 1;
    ranks_pass(2, other_rank, "1", 120000);
    ranks_pass(2, other_rank, NULL, 120000);
}

/* Rank 1 leaves in the middle of a pass whose first parts are on their way. */
static int failing_rank(int rank, int size, int port, void *arg)
{
    struct det_err err = {0};
    fails_at = rank == 1 ? 3 : 0;
    RANK_CHECK(train(rank, size, port, &err) < 0);
    RANK_CHECK(rank == 0 || asked == 3);
    RANK_CHECK(strstr(err.text, "rank 1 is gone") != NULL);
    return 0;
}

static void test_a_rank_that_fails_in_a_pass_ends_all(void **state)
{
    passes = 1;
    setenv("DET_OVERLAP_MIB", "0.00001", 1);
    ranks_pass(2, failing_rank, NULL, 120000);
}

/* On both ranks; the one that comes later may hear of the other's end first. */
static void test_a_mean_that_fails_ends_the_run(void **state)
{
    fails_at = 3;
    refuse("1", ODD_NOTHING, " is gone");
    fails_at = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_are_those_of_a_mean_after_the_pass),
        cmocka_unit_test(test_what_cannot_be_beside_it_is_refused),
        cmocka_unit_test(test_what_is_no_size_is_refused),
        cmocka_unit_test(test_ranks_with_other_sizes_are_refused),
        cmocka_unit_test(test_a_rank_that_fails_in_a_pass_ends_all),
        cmocka_unit_test(test_a_mean_that_fails_ends_the_run),
    };
    setenv("DET_DEVICE", "cuda", 1);
    setenv("EMULATED_DEVICES", "2", 1);
    if (!mkdtemp(dir))
        return 1;
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    det_ignore(fsx_remove_tree(AT_FDCWD, dir, NULL), "the test is over");
    return rc;
}
