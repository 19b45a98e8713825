#!/usr/bin/env python3
"""Data against PyTorch, torchvision and Pillow: the order of shuffles, samplers, decoded pixels, steps on images, and
the records of an image folder.

usage: test_torch_data.py LIBRARY      exit status 77: PyTorch or torchvision is absent, nothing was tested
"""
import ctypes as C
import io
import os
import random
import sys
import tempfile
import unittest

try:
    import numpy as np
    import torch
    from PIL import Image
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler
    from torchvision import datasets, transforms
    from torchvision.transforms import functional as TF
except ImportError as e:
    print("skipped: no PyTorch or torchvision for %s (%s)" % (sys.executable, e))
    sys.exit(77)

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz", "corpus", "image")
LIB = C.CDLL(sys.argv.pop(1))
P, I64, I, D, S = C.c_void_p, C.c_int64, C.c_int, C.c_double, C.c_char_p


class Err(C.Structure):
    _fields_ = [("code", I), ("text", C.c_char * 2048)]


class Draws(C.Structure):
    _fields_ = [("seed", C.c_uint64), ("epoch", I64), ("record", I64), ("count", C.c_uint32)]


class Key(C.Structure):
    _fields_ = [("seed", C.c_uint64), ("epoch", I64)]


class Step(C.Structure):
    _fields_ = [("op", I), ("size", I), ("height", I), ("width", I), ("padding", I), ("p", D), ("scale", D * 2), ("ratio", D * 2),
                ("brightness", D), ("contrast", D), ("saturation", D), ("mean", D * 3), ("std", D * 3)]


class Folder(C.Structure):
    _fields_ = [("path", S), ("steps", C.POINTER(Step)), ("pixels_max", I64)]


END, RESIZE, CENTER, CROP, RANDOM_RESIZED, FLIP, JITTER, NORMALIZE = range(8)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def fn(name, result, *args):
    f = getattr(LIB, name)
    f.restype, f.argtypes = result, args
    return f


epoch_seed = fn("sampler_epoch_seed", I64, C.c_uint32, I64)
shuffle = fn("sampler_shuffle", None, C.c_uint32, I64, C.POINTER(I64), C.c_size_t)
draw_int = fn("det_draw_int", I64, C.POINTER(Draws), I64)
image_folder = fn("det_dataset_image_folder", P, C.POINTER(Folder), C.POINTER(Err))
length = fn("det_dataset_length", I64, P)
class_name = fn("det_dataset_class_name", S, P, I64)
unref = fn("det_dataset_unref", None, P)
read = fn("dataset_read", I, P, I64, Key, C.POINTER(P), C.POINTER(Err))
random_sampler = fn("det_sampler_random", P, I64, C.c_uint64, C.POINTER(Err))
sampler_begin = fn("det_sampler_begin", None, P)
sampler_next = fn("det_sampler_next", C.c_bool, P, C.POINTER(C.POINTER(I64)), C.POINTER(C.c_size_t))
sampler_destroy = fn("det_sampler_destroy", None, P)


class Repeat:
    """A batch sampler begun again for ever, as the training loop's."""

    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        while True:
            yield from self.inner


class Order(unittest.TestCase):
    def perm(self, seed, epoch, n):
        out = (I64 * n)()
        shuffle(seed, epoch, out, n)
        return list(out)

    def test_loader(self):
        """Three epochs of a shuffling DataLoader after manual_seed, in batches."""
        for seed in (0, 1, 777, 2**31 - 1):
            for n in (1, 2, 3, 10, 64, 1000):
                torch.manual_seed(seed)
                data = range(n)
                batches = iter(DataLoader(data, batch_sampler=Repeat(BatchSampler(RandomSampler(data), n, False))))
                for epoch in range(3):
                    self.assertEqual(next(batches).tolist(), self.perm(seed, epoch, n), (seed, n, epoch))

    def test_randperm(self):
        for n in (1, 2, 7, 100, 4096, 99999, 100000):
            for seed in (0, 5):
                g = torch.Generator().manual_seed(epoch_seed(seed, 2))
                self.assertEqual(torch.randperm(n, generator=g).tolist(), self.perm(seed, 2, n), (seed, n))

    def test_random_sampler(self):
        item, n = C.POINTER(I64)(), C.c_size_t()
        for seed in (3, 2**40 + 1):
            theirs = RandomSampler(range(50), generator=torch.Generator().manual_seed(seed))
            ours = random_sampler(50, seed, None)
            for _ in range(3):
                sampler_begin(ours)
                got = []
                while sampler_next(ours, C.byref(item), C.byref(n)):
                    got.append(item[0])
                self.assertEqual(got, list(theirs))
            sampler_destroy(ours)


def steps(*each):
    out = (Step * (len(each) + 1))()
    for to, (op, fields) in zip(out, each):
        to.op = op
        for name, value in fields.items():
            setattr(to, name, (D * len(value))(*value) if isinstance(value, (tuple, list)) else value)
    return out


class OneFolder:
    """An image folder and its records as arrays."""

    def __init__(self, path, each):
        err = Err()
        self.keep = each
        self.ds = image_folder(C.byref(Folder(path.encode(), each, 0)), C.byref(err))
        assert self.ds, err.text

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        unref(self.ds)

    def record(self, i, height, width, seed=0, epoch=0):
        x, y, err = np.zeros((3, height, width), np.float32), np.zeros((), np.int64), Err()
        out = (P * 2)(x.ctypes.data, y.ctypes.data)
        rc = read(self.ds, i, Key(seed, epoch), out, C.byref(err))
        assert rc == 0, err.text
        return x, int(y)


def picture(width, height, seed=0):
    """Smooth and busy at once, so that every frequency and both edges count."""
    r = np.random.RandomState(seed)
    y, x = np.mgrid[:height, :width]
    base = np.stack([128 + 100 * np.sin(x / (7 + c) + c) * np.cos(y / (5 + c)) for c in range(3)], -1)
    return Image.fromarray((base + r.randint(-25, 25, base.shape)).clip(0, 255).astype(np.uint8))


def saved(image, fmt, **options):
    b = io.BytesIO()
    image.save(b, fmt, **options)
    return b.getvalue()


def kinds():
    """name, bytes of one picture in each kind of file."""
    for w, h in ((64, 48), (101, 67), (1, 1), (17, 130)):
        im = picture(w, h, w)
        for sub in (0, 1, 2):
            for progressive in (False, True):
                yield f"{w}x{h}-sub{sub}-{progressive}.jpg", saved(im, "JPEG", quality=85, subsampling=sub, progressive=progressive)
        yield f"{w}x{h}-grey.jpg", saved(im.convert("L"), "JPEG")
        yield f"{w}x{h}-cmyk.jpg", saved(im.convert("CMYK"), "JPEG")
        for mode in ("RGB", "RGBA", "L", "LA", "P", "1"):
            yield f"{w}x{h}-{mode}.png", saved(im.convert(mode), "PNG")


class Pictures(unittest.TestCase):
    def folder(self, files):
        """A folder with one class of these {name: bytes}; the names in the order of the records."""
        d = tempfile.TemporaryDirectory()
        self.addCleanup(d.cleanup)
        os.mkdir(d.name + "/a")
        for name, data in files.items():
            with open(d.name + "/a/" + name, "wb") as f:
                f.write(data)
        return d.name, sorted(files)

    def rgb(self, data):
        return Image.open(io.BytesIO(data)).convert("RGB")

    def test_decoders(self):
        """Every kind of file gives Pillow's pixels; CMYK within one level."""
        for name, data in kinds():
            want = np.asarray(self.rgb(data), np.float32).transpose(2, 0, 1)
            path, _ = self.folder({name: data})
            h, w = want.shape[1:]
            with OneFolder(path, steps((CENTER, dict(height=h, width=w)))) as f:
                got = f.record(0, h, w)[0] * 255
            self.assertLessEqual(np.abs(got - want).max(), 1.01 if "cmyk" in name else 1e-4, name)

    def test_corpus(self):
        """The fuzzer's small files, an interlaced one among them."""
        for name in ("interlaced.png", "rgba.png", "palette.png", "small.jpg", "progressive.jpg"):
            with open(os.path.join(CORPUS, name), "rb") as f:
                data = f.read()
            want = np.asarray(self.rgb(data), np.float32).transpose(2, 0, 1)
            with OneFolder(self.folder({name: data})[0], steps((CENTER, dict(height=14, width=21)))) as f:
                self.assertLessEqual(np.abs(f.record(0, 14, 21)[0] * 255 - want).max(), 1e-4, name)

    def test_crops(self):
        """A crop is decoded alone, to what the whole image has there."""
        r = random.Random(1)
        files = {n: d for n, d in kinds() if not n.startswith("1x1")}
        for name, data in files.items():
            im = self.rgb(data)
            path, _ = self.folder({name: data})
            for _ in range(8):
                h, w = r.randint(1, im.height), r.randint(1, im.width)
                with OneFolder(path, steps((CROP, dict(height=h, width=w)))) as f:
                    epoch = r.randint(0, 99)
                    got = f.record(0, h, w, 3, epoch)[0] * 255
                d = Draws(3, epoch, 0, 0)
                y, x = draw_int(d, im.height - h + 1), draw_int(d, im.width - w + 1)
                want = np.asarray(im, np.float32).transpose(2, 0, 1)[:, y:y + h, x:x + w]
                self.assertLessEqual(np.abs(got - want).max(), 1.01 if "cmyk" in name else 1e-4, (name, x, y, w, h))

    def check(self, ours, theirs, size, image=None, draws=None):
        data = saved(image or picture(150, 110), "PNG")
        path, _ = self.folder({"x.png": data})
        want = theirs(self.rgb(data)).numpy()
        with OneFolder(path, ours) as f:
            got = f.record(0, *size)[0]
        self.assertEqual(want.shape, got.shape)
        self.assertLessEqual(np.abs(got - want).max(), 1e-6)

    def test_resize(self):
        for w, h in ((150, 110), (30, 200), (64, 64)):
            im = picture(w, h)
            for height, width in ((50, 70), (224, 224), (h, 33), (7, w), (h, w), (1, 1), (3, 300)):
                self.check(steps((RESIZE, dict(height=height, width=width))),
                           transforms.Compose([transforms.Resize((height, width)), transforms.ToTensor()]), (height, width), im)

    def test_validation(self):
        """The usual steps of an ImageNet validation, to the bit; and crops larger than the image."""
        for size, crop in ((96, 80), (200, 180), (40, 64), (41, 41)):
            for w, h in ((150, 110), (110, 151), (77, 77)):
                t = transforms.Compose([transforms.Resize(size), transforms.CenterCrop(crop), transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
                self.check(steps((RESIZE, dict(size=size)), (CENTER, dict(size=crop)), (NORMALIZE, dict(mean=MEAN, std=STD))), t, (crop, crop),
                           picture(w, h))

    def test_random_steps(self):
        """What was drawn is drawn by torchvision's rule: each record's crop and flip are found among all there are."""
        im = picture(12, 10)
        path, _ = self.folder({"x.png": saved(im, "PNG")})
        padded = TF.pad(im, 2)
        every = {}
        for y in range(padded.height - 7):
            for x in range(padded.width - 7):
                part = TF.crop(padded, y, x, 8, 8)
                every[TF.to_tensor(part).numpy().tobytes()] = (y, x, False)
                every[TF.to_tensor(TF.hflip(part)).numpy().tobytes()] = (y, x, True)
        for order in ((CROP, FLIP), (FLIP, CROP)):
            named = {CROP: (CROP, dict(size=8, padding=2)), FLIP: (FLIP, {})}
            with OneFolder(path, steps(*(named[o] for o in order))) as f:
                seen = {every[f.record(0, 8, 8, 1, e)[0].tobytes()] for e in range(600)}
                again = f.record(0, 8, 8, 1, 5)[0]
                self.assertTrue((again == f.record(0, 8, 8, 1, 5)[0]).all())
            self.assertEqual({s[0] for s in seen}, set(range(7)))
            self.assertEqual({s[1] for s in seen}, set(range(9)))
            self.assertEqual({s[2] for s in seen}, {False, True})

    def test_random_resized_crop(self):
        """Areas and shapes have the distribution that torchvision's draws have: a picture whose pixels tell where they
        come from shows the rectangle."""
        w, h, n = 250, 200, 400
        y, x = np.mgrid[:h, :w]
        im = Image.fromarray(np.stack([x, y, 0 * x], -1).astype(np.uint8))
        path, _ = self.folder({"x.png": saved(im, "PNG")})
        ours = []
        with OneFolder(path, steps((RANDOM_RESIZED, dict(size=64)))) as f:
            for e in range(n):
                got = f.record(0, 64, 64, 9, e)[0] * 255
                ours.append(((got[0, 0, -1] - got[0, 0, 0]) * 64 / 63, (got[1, -1, 0] - got[1, 0, 0]) * 64 / 63))
        theirs = [transforms.RandomResizedCrop.get_params(im, (0.08, 1), (3 / 4, 4 / 3))[2:] for _ in range(4000)]
        ours, theirs = np.array(ours), np.array([(b, a) for a, b in theirs])
        for measure in (lambda v: v[:, 0] * v[:, 1] / (w * h), lambda v: np.log(v[:, 0] / v[:, 1])):
            a, b = measure(ours), measure(theirs)
            self.assertLess(abs(a.mean() - b.mean()), 5 * b.std() / n ** 0.5)
            self.assertLess(abs(a.std() - b.std()), 0.2 * b.std())

    def test_color_jitter(self):
        """Each adjustment alone: some factor of its range gives Pillow's pixels, to one level."""
        im = picture(20, 14)
        path, _ = self.folder({"x.png": saved(im, "PNG")})
        for name, adjust in (("brightness", TF.adjust_brightness), ("contrast", TF.adjust_contrast), ("saturation", TF.adjust_saturation)):
            factors = np.linspace(0.6, 1.4, 2001)
            tries = np.stack([np.asarray(adjust(im, f), np.float32).transpose(2, 0, 1) for f in factors])
            with OneFolder(path, steps((CROP, dict(height=14, width=20)), (JITTER, {name: 0.4}))) as f:
                seen = set()
                for e in range(10):
                    got = f.record(0, 14, 20, 1, e)[0] * 255
                    off = np.abs(tries - got).max((1, 2, 3))
                    self.assertLessEqual(off.min(), 1.01, name)
                    seen.add(int(off.argmin()))
                self.assertGreater(len(seen), 5)

    def test_folder_order(self):
        """Classes and files in ImageFolder's order, directories within directories too."""
        with tempfile.TemporaryDirectory() as d:
            names = ["b/2.jpg", "b/10.JPG", "b/1.png", "b/x-1/a.png", "b/x/a.png", "b/x/y/c.jpeg", "B/z.png", "a b/ü.png", "a b/u.png", "c/n.txt", "c/k.png"]
            for i, name in enumerate(names):
                os.makedirs(os.path.dirname(f"{d}/{name}"), exist_ok=True)
                if not name.endswith(".txt"):
                    Image.new("RGB", (2, 2), (i, 0, 0)).save(f"{d}/{name}", "PNG")
            theirs = datasets.ImageFolder(d, transforms.ToTensor())
            with OneFolder(d, steps((CENTER, dict(size=2)))) as f:
                self.assertEqual(length(f.ds), len(theirs))
                self.assertEqual([class_name(f.ds, i).decode() for i in range(len(theirs.classes))], theirs.classes)
                for i, (x, y) in enumerate(theirs):
                    got = f.record(i, 2, 2)
                    self.assertEqual((got[0].tolist(), got[1]), (x.numpy().tolist(), y))


if __name__ == "__main__":
    unittest.main()
