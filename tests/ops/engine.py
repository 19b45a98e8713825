"""The engine as a library of C functions, opened by the tests that compare it with PyTorch. The library is the
first argument of the program. Exit status 77: PyTorch is absent, nothing can be tested."""
import ctypes as C
import os
import sys

try:
    import torch
except ImportError as e:
    print("skipped: no PyTorch for %s (%s)" % (sys.executable, e))
    sys.exit(77)

LIB = C.CDLL(sys.argv.pop(1))
P, D, I, L, B = C.c_void_p, C.c_double, C.c_int, C.c_int64, C.c_bool


class Err(C.Structure):
    _fields_ = [("code", I), ("text", C.c_char * 2048)]


class EngineOptions(C.Structure):
    _fields_ = [("device", C.c_char_p), ("seed", C.c_uint64), ("threads", I), ("mem_limit_bytes", C.c_size_t)]


class ConvOptions(C.Structure):
    _fields_ = [("stride", I), ("padding", I), ("dilation", I), ("groups", I), ("no_bias", B), ("relu", B),
                ("same", B), ("padding_mode", I), ("stride_hw", I * 2), ("padding_hw", I * 2), ("dilation_hw", I * 2),
                ("kernel_hw", I * 2), ("output_padding", I), ("output_padding_hw", I * 2)]


class NormOptions(C.Structure):
    _fields_ = [("eps", D), ("momentum", D), ("relu", B), ("cumulative", B), ("no_affine", B), ("no_track", B)]


class LinearOptions(C.Structure):
    _fields_ = [("no_bias", B)]


class SgdOptions(C.Structure):
    _fields_ = [("lr", D), ("momentum", D), ("dampening", D), ("weight_decay", D), ("nesterov", B),
                ("maximize", B)]


class AdamOptions(C.Structure):
    _fields_ = [("lr", D), ("beta1", D), ("beta2", D), ("eps", D), ("weight_decay", D), ("amsgrad", B), ("maximize", B)]


class Named(C.Structure):
    _fields_ = [("name", C.c_char_p), ("tensor", P)]


def fn(name, result, *args):
    f = getattr(LIB, name)
    f.restype, f.argtypes = result, args
    return f


create = fn("det_engine_create", I, C.POINTER(EngineOptions), C.POINTER(P), C.POINTER(Err))
error = fn("det_engine_error", I, P, C.POINTER(Err))
step_end = fn("det_engine_step_end", None, P)
from_host = fn("det_from_host", P, P, I, I, C.POINTER(L), P)
requires_grad = fn("det_requires_grad", P, P, P)
grad = fn("det_tensor_grad", P, P)
ndim = fn("det_tensor_ndim", I, P)
dims = fn("det_tensor_dims", C.POINTER(L), P)
nbytes = fn("det_tensor_bytes", C.c_size_t, P)
dtype = fn("det_tensor_dtype", I, P)
read = fn("det_tensor_read", I, P, P, C.c_size_t, P)
write = fn("det_tensor_write", I, P, P, C.c_size_t, P)
backward = fn("det_backward", I, P, P)
item = fn("det_item", D, P, P)
mul = fn("det_mul", P, P, P, P)
total, relu = (fn("det_" + n, P, P, P) for n in ("sum", "relu"))
flatten = fn("det_flatten", P, P, P, I)
max_pool = fn("det_max_pool2d", P, P, P, I, I, I)
_cross_entropy = fn("det_cross_entropy_opt", P, P, P, P, P)
forward = fn("det_forward", P, P, P)
nn_module, nn_relu, nn_flatten = (fn("det_nn_" + n, P, P) for n in ("module", "relu", "flatten"))
nn_conv = fn("det_nn_conv2d_create", P, P, L, L, I, C.POINTER(ConvOptions))
nn_linear = fn("det_nn_linear_create", P, P, L, L, C.POINTER(LinearOptions))
nn_norm = fn("det_nn_batch_norm2d_create", P, P, L, C.POINTER(NormOptions))
nn_max_pool = fn("det_nn_max_pool2d", P, P, I, I, I)
module_add = fn("det_module_add", P, P, C.c_char_p, P)
module_destroy = fn("det_module_destroy", None, P)
module_train = fn("det_module_train", None, P, B)
_module_to = fn("det_module_to", I, P, I)
state = fn("det_module_state", C.POINTER(Named), P, C.POINTER(C.c_size_t))
clip_norm = fn("det_clip_grad_norm", P, P, D)
sgd = fn("det_sgd_create", P, P, C.POINTER(SgdOptions))
adam = fn("det_adam_create", P, P, C.POINTER(AdamOptions))
zero_grad = fn("det_optim_zero_grad", None, P)
optim_step = fn("det_optim_step", I, P)


def cross_entropy(e, x, target):
    return _cross_entropy(e, x, target, None)


# In the order of enum det_dtype.
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.int16,
          torch.int8, torch.uint8, torch.bool]

E = P()
FAULT = Err()
DEVICE = os.environ.get("DET_OPS_DEVICE", "cpu").encode()
assert create(C.byref(EngineOptions(DEVICE, 1, 2)), C.byref(E), C.byref(FAULT)) == 0, FAULT.text
torch.set_num_threads(2)
torch.manual_seed(7)


def double(module):
    """module.double() of ours."""
    assert _module_to(module, DTYPES.index(torch.float64)) == 0


def check():
    if error(E, C.byref(FAULT)) < 0:
        raise AssertionError(FAULT.text.decode())


def ours(t):
    """A tensor of the engine with the values of a torch one; a leaf that wants a gradient where t does."""
    t2 = t.detach().contiguous()
    shape = (L * max(t2.dim(), 1))(*t2.shape)
    ret = from_host(E, DTYPES.index(t2.dtype), t2.dim(), shape, t2.data_ptr())
    if t.requires_grad:
        requires_grad(E, ret)
    check()
    return ret


def theirs(p):
    check()
    shape = [dims(p)[i] for i in range(ndim(p))]
    t = torch.zeros(shape, dtype=DTYPES[dtype(p)])
    assert read(p, t.data_ptr(), nbytes(p), None) == 0
    return t


def tensor_list(module):
    n = C.c_size_t()
    p = state(module, C.byref(n))
    return [(p[i].name.decode(), p[i].tensor) for i in range(n.value)]


def load(module, net):
    """Gives the engine's module the state of a torch one; the names must be equal, in order."""
    named = tensor_list(module)
    assert [n for n, _ in named] == list(net.state_dict()), [n for n, _ in named]
    for name, p in named:
        t = net.state_dict()[name].contiguous()
        assert write(p, t.data_ptr(), nbytes(p), None) == 0
