#include "tape.h"

#include <string.h>

#include "dtype.h"
#include "mem.h"

struct tape {
    VEC(struct det_node *) nodes;
};

struct tape *tape_create(void)
{
    return det_zalloc(sizeof(struct tape));
}

static void drop_tensor(struct det_tensor **t)
{
    det_tensor_unref(*t);
    *t = NULL;
}

/* A finished node needs its tensors no more: the memory of a step goes down as its backward goes
 * on. out[0] stays where somebody else has it, so that a second backward through it is noticed. */
static void node_release(struct det_node *n)
{
    for (int i = 0; i < DET_CALL_IN_MAX; i++)
        drop_tensor(&n->in[i]);
    for (int i = 1; i < DET_CALL_OUT_MAX; i++)
        drop_tensor(&n->out[i]);
    if (n->out[0] && n->out[0]->refs == 1)
        drop_tensor(&n->out[0]);
}

static void node_destroy(struct det_node *n)
{
    if (n->out[0] && n->out[0]->node == n)
        n->out[0]->node = NULL;
    node_release(n);
    drop_tensor(&n->out[0]);
    det_tensor_unref(n->grad);
    free(n);
}

void tape_clear(struct tape *t)
{
    for (size_t i = 0; i < t->nodes.n; i++)
        node_destroy(t->nodes.v[i]);
    t->nodes.n = 0;
}

void tape_destroy(struct tape *t)
{
    if (!t)
        return;
    tape_clear(t);
    vec_free(&t->nodes);
    free(t);
}

void tape_record(struct tape *t, const struct op_call *c)
{
    struct det_node *n = det_zalloc(sizeof *n);
    n->op = c->op;
    n->a = c->a;
    for (int i = 0; i < DET_CALL_IN_MAX; i++)
        n->in[i] = det_tensor_ref(c->in[i]);
    for (int i = 0; i < DET_CALL_OUT_MAX; i++)
        n->out[i] = det_tensor_ref(c->out[i]);
    n->out[0]->node = n;
    vec_push(&t->nodes, n);
}

/* Makes sure a leaf has memory for its gradient. */
static int grad_alloc(struct det_engine *e, struct det_tensor *t, struct det_err *err)
{
    if (t->grad)
        return 0;
    return det__tensor_new(e, t->dtype, DET_LAYOUT_PLAIN, t->ndim, t->dims, &t->grad, err);
}

int det__grad_dest(struct det_engine *e, struct det_tensor *t, struct det_tensor **ret,
                   struct det_err *err)
{
    /* A module's vector of gradients may be wider than the leaf: what is computed comes there by a
     * copy, not as the leaf's numbers in the vector's memory. */
    if (t->node || t->grad_set || (t->grad && t->grad->dtype != t->dtype))
        return det__tensor_like(e, t, ret, err);
    int rc = grad_alloc(e, t, err);
    if (rc == 0)
        *ret = det_tensor_ref(t->grad);
    return rc;
}

/* y = y + g, or a new tensor in *y where somebody else still looks at y's memory. Takes g. */
static int add_into(struct det_engine *e, struct det_tensor **y, struct det_tensor *g,
                    struct det_err *err)
{
    TENSOR_OWN given = g;
    TENSOR_OWN sum = NULL;
    bool shared = (*y)->refs > 1 || (*y)->storage->refs > 1;
    int rc = shared ? det__tensor_like(e, *y, &sum, err) : 0;
    if (rc < 0)
        return rc;
    struct det_call c = {.kernel = DET_KERNEL_ADD, .in = {*y, given}, .out = {shared ? sum : *y}};
    rc = det__run(e, &c, err);
    if (rc == 0 && shared) {
        det_tensor_unref(*y);
        *y = det_take(sum);
    }
    return rc;
}

/* *g in the dtype of the leaf's gradient, which may be wider than the leaf. */
static int as_grad(struct det_engine *e, const struct det_tensor *t, struct det_tensor **g,
                   struct det_err *err)
{
    TENSOR_OWN cast = NULL;
    if ((*g)->dtype == t->grad->dtype)
        return 0;
    int rc =
        det__tensor_new(e, t->grad->dtype, DET_LAYOUT_PLAIN, (*g)->ndim, (*g)->dims, &cast, err);
    if (rc == 0)
        rc = det__copy(e, *g, cast, err);
    if (rc < 0)
        return rc;
    det_tensor_unref(*g);
    *g = det_take(cast);
    return 0;
}

/* A leaf's gradient keeps its memory: it may be part of a module's vector of gradients. */
static int leaf_add(struct det_engine *e, struct det_tensor *t, struct det_tensor *g,
                    struct det_err *err)
{
    TENSOR_OWN given = g;
    int rc = grad_alloc(e, t, err);
    if (rc == 0 && t->grad_set)
        rc = as_grad(e, t, &given, err);
    if (rc == 0 && !t->grad_set && given != t->grad)
        rc = det__copy(e, given, t->grad, err);
    else if (rc == 0 && given != t->grad)
        rc = det__run(
            e,
            &(struct det_call){.kernel = DET_KERNEL_ADD, .in = {t->grad, given}, .out = {t->grad}},
            err);
    if (rc == 0)
        t->grad_set = true;
    return rc;
}

int det__grad_add(struct det_engine *e, struct det_tensor *t, struct det_tensor *g,
                  struct det_err *err)
{
    if (!t->node)
        return leaf_add(e, t, g, err);
    if (!t->node->grad) {
        t->node->grad = g;
        return 0;
    }
    return add_into(e, &t->node->grad, g, err);
}

static int check_gradient(const struct det_tensor *loss, const struct det_tensor *g,
                          struct det_err *err)
{
    char x[160], y[160];
    if (g->dtype == loss->dtype && det__same_shape(loss, g))
        return 0;
    return det_fail(err, DET_EINVAL, "backward(%s, gradient %s): they must have one shape and type",
                    det__tensor_text(loss, x, sizeof x), det__tensor_text(g, y, sizeof y));
}

static int refuse_loss(const struct det_tensor *loss, int rc, const char *why, struct det_err *err)
{
    char text[160];
    return det_fail(err, rc, "backward(%s): %s", det__tensor_text(loss, text, sizeof text), why);
}

static int check_loss(struct det_tensor *loss, const struct det_tensor *gradient,
                      struct det_err *err)
{
    int rc = gradient ? check_gradient(loss, gradient, err) : 0;
    if (rc < 0)
        return rc;
    if (loss->numel != 1 && !gradient)
        return refuse_loss(loss, DET_EINVAL, "the loss must have one element: use det_mean()", err);
    if (!loss->node)
        return refuse_loss(loss, DET_EINVAL,
                           "the loss does not depend on any parameter, or was computed without "
                           "gradients or in an earlier step",
                           err);
    if (loss->node->done)
        return refuse_loss(loss, DET_ESTATE,
                           "this graph was gone through already; compute the loss again", err);
    return 0;
}

static int seed_loss(struct det_engine *e, struct det_tensor *loss, struct det_tensor *gradient,
                     struct det_err *err)
{
    TENSOR_OWN one = NULL;
    int rc = det__tensor_like(e, loss, &one, err);
    if (rc == 0 && gradient)
        rc = det__copy(e, gradient, one, err);
    else if (rc == 0)
        rc = det__run(e, &(struct det_call){.kernel = DET_KERNEL_FILL, .out = {one}, .a.scale = 1},
                      err);
    if (rc < 0)
        return rc;
    return det__grad_add(e, loss, det_take(one), err);
}

/* Gives a node's gradient to its inputs, then forgets it. */
static int node_backward(struct det_engine *e, struct det_node *n, bool retain, struct det_err *err)
{
    if (!n->grad) {
        if (n->out[0] && n->out[0]->refs == 1) /* nobody is left to give it one */
            node_release(n);
        return 0;
    }
    if (n->done)
        return det_fail(err, DET_ESTATE, "backward: a part of this graph was gone through already");
    TENSOR_OWN dy = det_take(n->grad);
    n->done = !retain;
    int rc = op_table[n->op].grad(e, n, dy, err);
    if (n->done)
        node_release(n);
    return rc < 0 ? det_wrap(err, rc, "gradient of %s", op_table[n->op].name) : 0;
}

/* ---- for whoever is told when a leaf's gradient is complete ---- */

static bool is_wanting(const struct det_tensor *t)
{
    return t && t->requires_grad && !t->node;
}

/* A leaf, or one in another dtype: autocast makes all casts of weights before the first layer, and
 * their gradients would be complete at the end of the pass only. */
static bool is_counted(const struct det_tensor *t)
{
    const struct det_node *n = t ? t->node : NULL;
    return is_wanting(t) || (n && n->op == OP_CAST && !n->done && is_wanting(n->in[0]));
}

/* What n takes and is counted, each once. */
static int find_counted(const struct det_node *n, struct det_tensor *ret[DET_CALL_IN_MAX])
{
    int found = 0;
    for (int k = 0; k < DET_CALL_IN_MAX; k++) {
        bool is_new = is_counted(n->in[k]);
        for (int i = 0; i < found; i++)
            is_new = is_new && ret[i] != n->in[k];
        if (is_new)
            ret[found++] = n->in[k];
    }
    return found;
}

static void count_uses(const struct tape *t)
{
    struct det_tensor *in[DET_CALL_IN_MAX];
    for (int add = 0; add < 2; add++)
        for (size_t i = 0; i < t->nodes.n; i++)
            for (int k = find_counted(t->nodes.v[i], in); k-- > 0;)
                in[k]->grad_uses = add ? in[k]->grad_uses + 1 : 0;
}

static int go_through(struct det_engine *e, struct det_node *n, bool retain, struct det_err *err);

/* A node that takes t was gone through. A cast that nothing takes any more is so at once. */
static int end_use(struct det_engine *e, struct det_tensor *t, bool retain, struct det_err *err)
{
    if (t->grad_uses != 1) {
        t->grad_uses -= t->grad_uses > 0;
        return 0;
    }
    if (t->node)
        t->node->passed = true;
    int rc = t->node ? go_through(e, t->node, retain, err)
                     : e->grad_watch->complete(e->grad_watch->arg, t, err);
    t->grad_uses = 0; /* not before: whoever is told may count what is still to come */
    return rc;
}

static int go_through(struct det_engine *e, struct det_node *n, bool retain, struct det_err *err)
{
    struct det_tensor *in[DET_CALL_IN_MAX];
    int count = e->grad_watch ? find_counted(n, in) : 0;
    for (int i = 0; i < count; i++)
        det_tensor_ref(in[i]); /* the node lets go of them */
    int rc = node_backward(e, n, retain, err);
    for (int i = 0; i < count; i++) {
        if (rc == 0)
            rc = end_use(e, in[i], retain, err);
        det_tensor_unref(in[i]);
    }
    return rc;
}

/* Node i of the tape, unless it was gone through early. */
static int go_back(struct det_engine *e, size_t i, bool retain, struct det_err *err)
{
    struct det_node *n = e->tape->nodes.v[i];
    bool passed = n->passed;
    n->passed = false;
    return passed ? 0 : go_through(e, n, retain, err);
}

/* One that fails has ended too: parts of its gradients may be under way. */
static int run_pass(struct det_engine *e, struct det_tensor *loss,
                    const struct det_backward_options *o, struct det_err *err)
{
    int rc = seed_loss(e, loss, o->gradient, err);
    if (e->grad_watch)
        count_uses(e->tape);
    for (size_t i = e->tape->nodes.n; rc == 0 && i > 0; i--)
        rc = go_back(e, i - 1, o->retain_graph, err);
    e->grad_watch = NULL;
    return rc;
}

int det_backward(struct det_engine *e, struct det_tensor *loss)
{
    return det_backward_opt(e, loss, &(const struct det_backward_options){0});
}

int det_backward_opt(struct det_engine *e, struct det_tensor *loss,
                     const struct det_backward_options *o)
{
    struct det_err err;
    if (e->err.code < 0 || !loss)
        return e->err.code < 0 ? e->err.code
                               : det_engine_fail(e, DET_EINVAL, "backward: the loss is NULL");
    if (det__is_dead(loss))
        return det_engine_fail(e, DET_EINVAL, "backward: the loss " DET__IS_DEAD);
    int rc = check_loss(loss, o->gradient, &err);
    if (rc == 0 && e->grads_leave && !e->grad_watch)
        rc = det__grads_refuse("a second backward pass", &err);
    if (rc == 0)
        rc = run_pass(e, loss, o, &err);
    return rc < 0 ? det__keep_error(e, &err) : 0;
}

struct det_tensor *det_requires_grad(struct det_engine *e, struct det_tensor *t)
{
    if (!t || e->err.code < 0)
        return NULL;
    if (!det__is_float(t->dtype) || t->node) {
        det_engine_fail(e, DET_EINVAL,
                        "requires_grad: only a tensor of a floating dtype that no operation made");
        return NULL;
    }
    t->requires_grad = true;
    return t;
}
