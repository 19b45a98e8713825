/*
 * Streams and events on the host. What a stream is asked for waits in a queue until somebody waits
 * for it; then the stream does it, and of the other streams' work either only what an event has it
 * wait for, or all that nothing holds back, first. Two streams that nothing orders thus meet in
 * either order, by turns or as EMULATED_ORDER says.
 */
#include <assert.h>
#include <deque>
#include <functional>
#include <memory>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#include "cuda_runtime.h"

/* `on`: the entry is a wait for that stream's first `upto` entries. */
struct entry {
    std::function<void()> work;
    emulated_stream *on;
    long upto;
};

/* A copy to the host that nobody has waited for: the stream's entry `at`. */
struct download {
    void *to;
    std::vector<char> bytes;
    long at;
};

struct emulated_stream {
    int device;
    long asked, done; /* entries so far */
    std::deque<entry> queue;
    std::vector<download> downloads;
};

/* The first `upto` entries of `of`; none: it was never recorded. */
struct emulated_event {
    int device;
    emulated_stream *of;
    long upto;
};

/* All there ever were: an entry may wait for one that was destroyed. */
static std::vector<std::unique_ptr<emulated_stream>> streams;
static unsigned turns;

/* Of all that is here: the device does one thing at a time, whoever asks. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void emulated_lock(void)
{
    pthread_mutex_lock(&lock);
}

void emulated_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* Gets no rings: an entry waits for what was queued before it. */
static void run_to(emulated_stream *s, long upto)
{
    while (s->done < upto) {
        entry e = std::move(s->queue.front());
        s->queue.pop_front();
        if (e.on)
            run_to(e.on, e.upto);
        else
            e.work();
        s->done++;
    }
}

static bool can_go_on(const emulated_stream *s)
{
    if (s->queue.empty())
        return false;
    const entry &next = s->queue.front();
    return !next.on || next.on->done >= next.upto;
}

/* What needs nothing of `but`'s queue. */
static void run_others(const emulated_stream *but)
{
    for (bool went = true; went;) {
        went = false;
        for (auto &s : streams)
            for (; s.get() != but && can_go_on(s.get()); went = true)
                run_to(s.get(), s->done + 1);
    }
}

static bool others_come_first(void)
{
    const char *order = getenv("EMULATED_ORDER");
    if (order)
        return strcmp(order, "early") == 0;
    return turns++ % 2;
}

static void give_downloads(emulated_stream *s, long upto)
{
    auto &all = s->downloads;
    while (!all.empty() && all.front().at < upto) {
        memcpy(all.front().to, all.front().bytes.data(), all.front().bytes.size());
        all.erase(all.begin());
    }
}

static void await(emulated_stream *s, long upto)
{
    emulated_lock();
    if (others_come_first())
        run_others(s);
    run_to(s, upto);
    give_downloads(s, upto);
    emulated_unlock();
}

void emulated_run_others(cudaStream_t but)
{
    emulated_lock();
    run_others(but);
    emulated_unlock();
}

void emulated_await_all(void)
{
    emulated_lock();
    for (auto &s : streams)
        run_to(s.get(), s->asked);
    emulated_unlock();
}

static void push(emulated_stream *s, entry e)
{
    emulated_lock();
    s->queue.push_back(std::move(e));
    s->asked++;
    emulated_unlock();
}

void emulated_queue(cudaStream_t s, std::function<void()> work)
{
    push(s, entry{std::move(work), nullptr, 0});
}

void emulated_later(cudaStream_t s, void (*work)(const void *arg), const void *arg, size_t bytes)
{
    const char *from = static_cast<const char *>(arg);
    std::vector<char> kept(from, from + bytes); /* aligned as malloc() has it */
    emulated_queue(s, [work, kept] { work(kept.data()); });
}

/* The bytes are those that the stream's order has there; they are given when it is waited for. */
void emulated_download(cudaStream_t s, void *to, const void *from, size_t bytes)
{
    emulated_queue(s, [s, to, from, bytes] {
        emulated_open();
        const char *p = static_cast<const char *>(from);
        s->downloads.push_back(download{to, std::vector<char>(p, p + bytes), s->done});
        emulated_close();
    });
}

int emulated_device_of(cudaStream_t s)
{
    return s->device;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned flags)
{
    (void)flags;
    if (emulated_breaks())
        return emulated_failed(cudaErrorMemoryAllocation);
    emulated_hold(EMULATED_STREAMS, 1);
    emulated_lock();
    streams.push_back(std::make_unique<emulated_stream>());
    *ret = streams.back().get();
    (*ret)->device = emulated_current_device();
    emulated_unlock();
    return cudaSuccess;
}

/* What it was asked for is still done. */
cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    emulated_lock();
    run_to(s, s->asked);
    s->downloads.clear();
    emulated_hold(EMULATED_STREAMS, -1);
    emulated_unlock();
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    if (emulated_breaks())
        return emulated_failed(cudaErrorInvalidResourceHandle);
    emulated_count(EMULATED_WAIT, 0);
    await(s, s->asked);
    return emulated_health();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t ev, unsigned flags)
{
    (void)flags;
    if (emulated_breaks())
        return emulated_failed(cudaErrorInvalidResourceHandle);
    if (ev->of)
        push(s, entry{{}, ev->of, ev->upto});
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned flags)
{
    (void)flags;
    if (emulated_breaks())
        return emulated_failed(cudaErrorMemoryAllocation);
    emulated_hold(EMULATED_EVENTS, 1);
    *ret = new emulated_event{emulated_current_device(), nullptr, 0};
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t ev)
{
    delete ev;
    emulated_hold(EMULATED_EVENTS, -1);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t ev, cudaStream_t s)
{
    if (ev->device != s->device || emulated_breaks())
        return emulated_failed(cudaErrorInvalidResourceHandle);
    ev->of = s;
    ev->upto = s->asked;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t ev)
{
    if (emulated_breaks())
        return emulated_failed(cudaErrorInvalidResourceHandle);
    if (ev->of && ev->of->done < ev->upto) {
        emulated_count(EMULATED_WAIT, 0);
        await(ev->of, ev->upto);
    }
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ret, cudaEvent_t from, cudaEvent_t to)
{
    *ret = 1;
    return from && to ? cudaSuccess : emulated_failed(cudaErrorInvalidValue);
}
