/* Launches on the host: a loop over blocks, and over threads or the fibers that stand for them. */
#include <assert.h>
#include <stdlib.h>
#include <ucontext.h>

#include "cuda_runtime.h"

struct emulated_index threadIdx, blockIdx, blockDim, gridDim;

#define FIBERS_MAX  64
#define STACK_BYTES (256 << 10)

/* The fibers of the block that runs; `at` is the one that has the turn. */
static struct {
    const std::function<void()> *kernel; /* NULL: threads that never meet */
    ucontext_t home, fiber[FIBERS_MAX];
    char *stack[FIBERS_MAX];
    bool done[FIBERS_MAX];
    unsigned at;
} run;

void __syncthreads(void)
{
    assert(run.kernel); /* a kernel whose threads meet was launched as one whose threads do not */
    swapcontext(&run.fiber[run.at], &run.home);
}

static void fiber_main()
{
    (*run.kernel)();
    run.done[run.at] = true;
}

static void start(unsigned i)
{
    if (!run.stack[i])
        run.stack[i] = (char *)malloc(STACK_BYTES);
    assert(run.stack[i]);
    getcontext(&run.fiber[i]);
    run.fiber[i].uc_stack.ss_sp = run.stack[i];
    run.fiber[i].uc_stack.ss_size = STACK_BYTES;
    run.fiber[i].uc_link = &run.home;
    run.done[i] = false;
    makecontext(&run.fiber[i], fiber_main, 0);
}

/* Every thread goes to its next barrier in turn; all must meet there or all be done. */
static void run_block(unsigned threads)
{
    unsigned ended = 0;
    for (unsigned i = 0; i < threads; i++)
        start(i);
    while (ended == 0) {
        for (unsigned i = 0; i < threads; i++) {
            threadIdx.x = run.at = i;
            swapcontext(&run.home, &run.fiber[i]);
            ended += run.done[i];
        }
        assert(ended == 0 || ended == threads); /* else some wait for ever */
    }
}

void emulated_launch(unsigned blocks, unsigned threads, bool meet,
                     const std::function<void()> &kernel)
{
    assert(threads <= FIBERS_MAX);
    gridDim.x = blocks;
    blockDim.x = threads;
    run.kernel = meet ? &kernel : nullptr;
    emulated_open();
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
        if (meet)
            run_block(threads);
        for (threadIdx.x = 0; !meet && threadIdx.x < threads; threadIdx.x++)
            kernel();
    }
    emulated_close();
}

/* The stacks of the fibers, when the module goes. */
__attribute__((destructor)) static void free_stacks(void)
{
    for (char *stack : run.stack)
        free(stack);
}
