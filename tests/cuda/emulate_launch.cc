/* Launches on the host: a loop over blocks, and over threads or the fibers that stand for them. */
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <ucontext.h>

#include "cuda_runtime.h"

struct emulated_index threadIdx, blockIdx, blockDim, gridDim;

#define FIBERS_MAX  EMULATED_BLOCK_MAX
#define STACK_BYTES (256 << 10)
#define WARP        32

#ifdef __x86_64__
/* Goes from one stack to another: what a callee has to save lies on it. swapcontext() asks the
 * kernel for the mask of signals each time, and sanitizers clean the whole stack for it, which took
 * half of the tests' time and what they know of the frames there. */
struct place {
    void *sp;
};

extern "C" void emulated_switch(struct place *from, const struct place *to);
asm(R"(
    .text
    .type emulated_switch, @function
emulated_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq (%rsi), %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size emulated_switch, . - emulated_switch
)");

/* main() is entered as by a call, and never returns. */
static void begin_at(struct place *p, char *stack, void (*main)())
{
    void **top =
        (void **)(stack + STACK_BYTES) - 8; /* six registers, where to go, what a call pushes */
    memset(top, 0, 8 * sizeof *top);
    top[6] = (void *)main;
    p->sp = top;
}
#else
struct place {
    ucontext_t context;
};

static void emulated_switch(struct place *from, const struct place *to)
{
    swapcontext(&from->context, &to->context);
}

static void begin_at(struct place *p, char *stack, void (*main)())
{
    getcontext(&p->context);
    p->context.uc_stack.ss_sp = stack;
    p->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&p->context, main, 0);
}
#endif

/* The fibers of the block that runs; `at` is the one that has the turn. */
static struct {
    const std::function<void()> *kernel; /* NULL: threads that never meet */
    struct place home, fiber[FIBERS_MAX];
    char *stack[FIBERS_MAX];
    bool done[FIBERS_MAX];
    unsigned at;
    bool at_block[FIBERS_MAX]; /* waits at the block's barrier, not at its warp's */
} run;

unsigned emulated_block(void)
{
    return emulated_is_full_size() ? EMULATED_BLOCK_MAX : 4;
}

/* Counts all blocks that ever ran. */
static unsigned long blocks_run;

void emulated_shared(void *p, size_t bytes, unsigned long *of)
{
    if (*of != blocks_run)
        memset(p, 0xff, bytes);
    *of = blocks_run;
}

static unsigned char *dynamic;
static size_t dynamic_bytes;
static int allowed = 48 << 10;

#define SHARED_MAX 232448 /* of one block of an H100 */

/* Exactly so much, for the sanitizers. */
static void set_dynamic(size_t bytes)
{
    free(dynamic);
    dynamic = (unsigned char *)aligned_alloc(16, bytes);
    dynamic_bytes = bytes;
}

unsigned char *emulated_dynamic_shared(void)
{
    static unsigned long of;
    if (of != blocks_run)
        memset(dynamic, 0xff, dynamic_bytes);
    of = blocks_run;
    return dynamic;
}

cudaError_t emulated_allow_shared(int bytes)
{
    if (bytes > SHARED_MAX)
        return cudaErrorInvalidValue;
    allowed = bytes;
    return cudaSuccess;
}

static void meet(bool of_block)
{
    assert(run.kernel); /* a kernel whose threads meet was launched as one whose threads do not */
    run.at_block[run.at] = of_block;
    emulated_switch(&run.fiber[run.at], &run.home);
}

void __syncthreads(void)
{
    meet(true);
}

void __syncwarp(void)
{
    meet(false);
}

static void fiber_main()
{
    (*run.kernel)();
    run.done[run.at] = true;
    emulated_switch(&run.fiber[run.at], &run.home);
}

static void start(unsigned i)
{
    if (!run.stack[i])
        run.stack[i] = (char *)aligned_alloc(16, STACK_BYTES);
    assert(run.stack[i]);
    begin_at(&run.fiber[i], run.stack[i], fiber_main);
    run.done[i] = run.at_block[i] = false;
}

/* Which of n comes as the i-th of a round: a GPU promises no order, so each round has another one,
 * by turns backwards. */
static unsigned rounds;

static unsigned turn(unsigned round, unsigned i, unsigned n)
{
    unsigned at = (i + round / 2) % n;
    return round % 2 ? n - 1 - at : at;
}

/* The threads of a warp are at the same barrier, or all done: else some wait for ever. */
static void check_warps(unsigned threads)
{
    for (unsigned i = 0; i < threads; i++) {
        unsigned first = i / WARP * WARP;
        assert(run.done[i] == run.done[first] && run.at_block[i] == run.at_block[first]);
    }
}

/* Every thread goes to its next barrier in turn. Who is at the block's waits there for all others;
 * a warp goes on from its own. */
static void run_block(unsigned threads)
{
    unsigned ended = 0;
    blocks_run++;
    for (unsigned i = 0; i < threads; i++)
        start(i);
    for (; ended < threads; rounds++) {
        unsigned went = 0;
        for (unsigned i = 0; i < threads; i++) {
            run.at = turn(rounds, i, threads);
            if (run.done[run.at] || run.at_block[run.at])
                continue;
            threadIdx.x = run.at;
            emulated_switch(&run.home, &run.fiber[run.at]);
            ended += run.done[run.at];
            went++;
        }
        check_warps(threads);
        assert(went > 0 || ended == 0); /* else some wait for ever */
        for (unsigned i = 0; i < threads && went == 0; i++)
            run.at_block[i] = false;
    }
}

static void run_launch(struct emulated_size size, bool meet, const std::function<void()> &kernel)
{
    unsigned launch = rounds++;
    gridDim.x = size.blocks;
    blockDim.x = size.threads;
    run.kernel = meet ? &kernel : nullptr;
    emulated_open();
    if (size.shared > 0)
        set_dynamic(size.shared);
    for (unsigned b = 0; b < size.blocks; b++) {
        blockIdx.x = turn(launch, b, size.blocks);
        if (meet)
            run_block(size.threads);
        for (unsigned i = 0; !meet && i < size.threads; i++) {
            threadIdx.x = turn(launch, i, size.threads);
            kernel();
        }
    }
    emulated_close();
}

void emulated_launch(struct emulated_size size, bool meet, cudaStream_t stream,
                     std::function<void()> kernel)
{
    assert(size.blocks > 0 && size.blocks <= INT_MAX && size.threads <= FIBERS_MAX);
    assert(size.shared <= (size_t)allowed);
    if (size.shared > 0)
        allowed = 48 << 10;
    if (!emulated_takes(stream))
        return;
    emulated_count(EMULATED_KERNEL, 0);
    if (!emulated_is_empty())
        emulated_queue(stream, [=] { run_launch(size, meet, kernel); });
}

/* The stacks of the fibers, when the module goes. */
__attribute__((destructor)) static void free_stacks(void)
{
    free(dynamic);
    for (char *stack : run.stack)
        free(stack);
}
