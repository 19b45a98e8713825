// The gloo transport: a shim that turns gloo's classes into the table of comm_impl.h and every
// exception into a code and a text. Nothing thrown leaves this file.
extern "C" {
#include "clk.h"
#include "det/err.h"
}
#include "comm_impl.h"

#include <poll.h>
#include <sys/random.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

namespace
{

using ms = std::chrono::milliseconds;

// gloo's key-value store over ours; prefix: what one attempt's keys begin with.
class Store : public gloo::rendezvous::Store
{
  public:
    Store(struct comm_store *s, const std::string &prefix, int timeout_ms)
        : store_(s), prefix_(prefix), timeout_ms_(timeout_ms)
    {
    }

    void set(const std::string &key, const std::vector<char> &data) override
    {
        struct det_err err;
        if (comm_store_put(store_, (prefix_ + key).c_str(), data.data(), data.size(), &err) < 0)
            throw gloo::IoException(err.text);
    }

    std::vector<char> get(const std::string &key) override { return take(key, timeout_ms_); }

    void wait(const std::vector<std::string> &keys) override { wait(keys, ms(timeout_ms_)); }

    void wait(const std::vector<std::string> &keys, const ms &timeout) override
    {
        for (const auto &key : keys)
            take(key, static_cast<int>(timeout.count()));
    }

  private:
    std::vector<char> take(const std::string &key, int timeout_ms)
    {
        struct det_err err;
        void *p = nullptr;
        size_t n = 0;
        if (comm_store_take(store_, (prefix_ + key).c_str(), timeout_ms, &p, &n, &err) < 0)
            throw gloo::IoException(err.text);
        const char *c = static_cast<const char *>(p);
        std::vector<char> v(c, c + n);
        free(p);
        return v;
    }

    struct comm_store *store_;
    std::string prefix_;
    int timeout_ms_;
};

struct Gloo {
    std::shared_ptr<gloo::transport::Device> device;
    std::shared_ptr<gloo::rendezvous::Context> context;
};

// gloo marks a time-out only by its words; everything else is a peer whose connection broke.
int failed(const std::exception &e, struct det_err *err)
{
    int code = strstr(e.what(), "imed out") ? DET_ETIMEOUT : DET_EPEER;
    return det_fail(err, code, "gloo: %s", e.what());
}

int unknown(struct det_err *err)
{
    return det_fail(err, DET_EPEER, "gloo: an unknown exception");
}

template <typename F> int guarded(struct det_err *err, F f)
{
    try {
        f();
        return 0;
    } catch (const std::exception &e) {
        return failed(e, err);
    } catch (...) {
        return unknown(err);
    }
}

Gloo *of(void *self)
{
    return static_cast<Gloo *>(self);
}

template <typename T>
int allreduce_sum(void *self, T *v, size_t n, uint32_t op, int timeout_ms, struct det_err *err)
{
    return guarded(err, [&] {
        gloo::AllreduceOptions o(of(self)->context);
        o.setOutput(v, n);
        o.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
        o.setReduceFunction(
            static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<T>));
        o.setTag(op);
        o.setTimeout(ms(timeout_ms));
        gloo::allreduce(o);
    });
}

int broadcast(void *self, void *p, size_t n, int root, uint32_t op, int timeout_ms,
              struct det_err *err)
{
    return guarded(err, [&] {
        gloo::BroadcastOptions o(of(self)->context);
        o.setOutput(static_cast<char *>(p), n);
        o.setRoot(root);
        o.setTag(op);
        o.setTimeout(ms(timeout_ms));
        gloo::broadcast(o);
    });
}

int allgatherv(void *self, void *out, const size_t *bytes, uint32_t op, int timeout_ms,
               struct det_err *err)
{
    return guarded(err, [&] {
        auto &context = of(self)->context;
        gloo::AllgathervOptions o(context);
        o.setOutput(static_cast<char *>(out), std::vector<size_t>(bytes, bytes + context->size));
        o.setTag(op);
        o.setTimeout(ms(timeout_ms));
        gloo::allgatherv(o);
    });
}

int barrier(void *self, uint32_t op, int timeout_ms, struct det_err *err)
{
    return guarded(err, [&] {
        gloo::BarrierOptions o(of(self)->context);
        o.setTag(op);
        o.setTimeout(ms(timeout_ms));
        gloo::barrier(o);
    });
}

void destroy(void *self)
{
    try {
        delete of(self);
    } catch (...) {
    }
}

const struct comm_transport transport = {
    "gloo", allreduce_sum<float>, allreduce_sum<double>, broadcast, allgatherv, barrier, destroy,
};

// gloo takes whoever connects first for the rank that it waits for. Anybody on the host may, so the
// ranks say over each connection what only they know, from the store, which knows its own; where
// one of them hears something else, or nothing in the time for it, all begin again with other
// ports, until the time for joining is over: who comes again and again wins nothing by it. A rank
// that ends meanwhile ends it at once, by name (COMM_STORE_LOST).
enum { CHECK_MS = 2000, CHECK_MAX_MS = 16000, PAUSE_MAX_MS = 500, WORD_BYTES = 16 };
using Word = std::array<char, WORD_BYTES>;

struct Join {
    int rank, size;
    const char *address;
    struct comm_store *store;
    int64_t until_ms;

    int left_ms() const
    {
        int64_t left = until_ms - clk_mono_ms();
        return left > 1 ? static_cast<int>(left) : 1;
    }
};

void check_peers(const Join &j, Gloo &g, Store &store, int check_ms)
{
    Word mine;
    if (getrandom(mine.data(), mine.size(), 0) != static_cast<ssize_t>(mine.size()))
        throw gloo::IoException("no random bytes");
    store.set("word/" + std::to_string(j.rank), std::vector<char>(mine.begin(), mine.end()));
    std::vector<Word> said(j.size, mine), heard(j.size);
    gloo::AlltoallOptions o(g.context);
    o.setInput(said[0].data(), said.size() * WORD_BYTES);
    o.setOutput(heard[0].data(), heard.size() * WORD_BYTES);
    o.setTimeout(ms(check_ms));
    gloo::alltoall(o);
    for (int r = 0; r < j.size; r++) {
        std::vector<char> known = store.get("word/" + std::to_string(r));
        if (known.size() != WORD_BYTES || memcmp(known.data(), heard[r].data(), WORD_BYTES) != 0)
            throw gloo::IoException("a stranger took the place of rank " + std::to_string(r));
    }
}

std::unique_ptr<Gloo> connect_once(const Join &j, int attempt)
{
    std::unique_ptr<Gloo> g(new Gloo);
    gloo::transport::tcp::attr attr;
    attr.hostname = j.address;
    g->device = gloo::transport::tcp::CreateDevice(attr);
    g->context = std::make_shared<gloo::rendezvous::Context>(j.rank, j.size);
    g->context->setTimeout(ms(j.left_ms()));
    Store s(j.store, "gloo/" + std::to_string(attempt) + "/", j.left_ms());
    g->context->connectFullMesh(s, g->device);
    check_peers(j, *g, s, attempt < 3 ? CHECK_MS << attempt : CHECK_MAX_MS);
    return g;
}

// Whether all have come together: who has not says so to the others.
bool all_joined(const Join &j, int attempt, bool here)
{
    Store s(j.store, "joined/" + std::to_string(attempt) + "/", j.left_ms());
    bool all = true;
    s.set(std::to_string(j.rank), std::vector<char>(1, here ? '1' : '0'));
    for (int r = 0; r < j.size; r++)
        all = s.get(std::to_string(r)) == std::vector<char>(1, '1') && all;
    return all;
}

// Rank 0 begins an attempt only when all have asked for their last key of the one before the last.
void forget(const Join &j, int attempt)
{
    const std::string n = std::to_string(attempt) + "/";
    for (const std::string &prefix : {"gloo/" + n, "joined/" + n}) {
        struct det_err err;
        if (comm_store_drop(j.store, prefix.c_str(), &err) < 0)
            throw gloo::IoException(err.text);
    }
}

} // namespace

extern "C" int comm_gloo_open(int rank, int size, const char *address, struct comm_store *store,
                              int join_timeout_ms, const struct comm_transport **ret,
                              void **ret_self, struct det_err *err)
{
    const Join j = {rank, size, address, store, clk_mono_ms() + join_timeout_ms};
    for (int attempt = 0;; attempt++) {
        std::unique_ptr<Gloo> g;
        bool all = false;
        int rc = guarded(err, [&] {
            if (rank == 0 && attempt >= 2)
                forget(j, attempt - 2);
            g = connect_once(j, attempt);
        });
        if (rc < 0 && clk_mono_ms() >= j.until_ms)
            return det_wrap(err, rc, "the ranks did not come together within %d ms",
                            join_timeout_ms);
        struct det_err other;
        int agreed = guarded(&other, [&] { all = all_joined(j, attempt, rc == 0); });
        if (agreed < 0 && rc < 0 && !comm_store_is_lost(store))
            return det_wrap(err, rc, "before the ranks had come together (%s), rank %d", other.text,
                            rank);
        if (agreed < 0)
            return det_fail(err, agreed, "before the ranks had come together: %s", other.text);
        if (all) {
            *ret = &transport;
            *ret_self = g.release();
            return 0;
        }
        poll(nullptr, 0, attempt < 6 ? 10 << attempt : PAUSE_MAX_MS);
    }
}
