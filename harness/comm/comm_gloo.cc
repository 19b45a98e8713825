// The gloo transport: a shim that turns gloo's classes into the table of comm_impl.h and every
// exception into a code and a text. Nothing thrown leaves this file.
extern "C" {
#include "det/err.h"
}
#include "comm_impl.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
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

// gloo's key-value store over ours.
class Store : public gloo::rendezvous::Store
{
  public:
    Store(struct comm_store *s, int timeout_ms) : store_(s), timeout_ms_(timeout_ms) {}

    void set(const std::string &key, const std::vector<char> &data) override
    {
        struct det_err err;
        if (comm_store_put(store_, key.c_str(), data.data(), data.size(), &err) < 0)
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
        if (comm_store_take(store_, key.c_str(), timeout_ms, &p, &n, &err) < 0)
            throw gloo::IoException(err.text);
        const char *c = static_cast<const char *>(p);
        std::vector<char> v(c, c + n);
        free(p);
        return v;
    }

    struct comm_store *store_;
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

} // namespace

extern "C" int comm_gloo_open(int rank, int size, const char *address, struct comm_store *store,
                              int join_timeout_ms, const struct comm_transport **ret,
                              void **ret_self, struct det_err *err)
{
    return guarded(err, [&] {
        std::unique_ptr<Gloo> g(new Gloo);
        gloo::transport::tcp::attr attr;
        attr.hostname = address;
        g->device = gloo::transport::tcp::CreateDevice(attr);
        g->context = std::make_shared<gloo::rendezvous::Context>(rank, size);
        g->context->setTimeout(ms(join_timeout_ms));
        Store s(store, join_timeout_ms);
        g->context->connectFullMesh(s, g->device);
        *ret = &transport;
        *ret_self = g.release();
    });
}
