"""Twin of brdf.wgsl: Lambert plus GGX reflectance. Colours and directions are [n, 3]."""

import numpy as np

from passes.twins.sampling import PI
from passes.twins.wgsl_functions import F32, clamp, cross, dot, mix, normalize

MIRROR_ROUGHNESS = np.float32(0.02)
NARROW_ROUGHNESS = np.float32(0.1)


def fresnel(f0: F32, cosine: F32) -> F32:
    m = clamp(1.0 - cosine, 0.0, 1.0)
    m2 = m * m
    return np.asarray(f0 + (1.0 - f0) * (m2 * m2 * m)[..., None])


def reflectance_at_normal(base_color: F32, metalness: F32) -> F32:
    return mix(np.full(3, 0.04, np.float32), base_color, metalness[..., None])


def smith_lambda(cosine: F32, alpha: F32) -> F32:
    c2 = cosine * cosine
    tangent2 = np.maximum(0.0, 1.0 - c2) / np.maximum(c2, np.float32(1.0e-12))
    return np.asarray(0.5 * (np.sqrt(1.0 + alpha * alpha * tangent2) - 1.0))


def evaluate_brdf(
    base_color: F32, metalness: F32, roughness: F32, normal: F32, view: F32, light: F32
) -> F32:
    n_l = dot(normal, light)
    n_v = np.maximum(dot(normal, view), np.float32(1.0e-4))
    h = normalize(view + light)
    f = fresnel(reflectance_at_normal(base_color, metalness), dot(view, h))
    diffuse = (1.0 - f) * (1.0 - metalness)[..., None] * base_color / PI
    alpha = roughness * roughness
    n_h = clamp(dot(normal, h), 0.0, 1.0)
    sine = cross(normal, h)
    d = dot(sine, sine) + n_h * n_h * (alpha * alpha)
    distribution = alpha * alpha / np.maximum(PI * d * d, np.float32(1.0e-20))
    masking = 1.0 / (1.0 + smith_lambda(n_l, alpha) + smith_lambda(n_v, alpha))
    specular = (
        f * (distribution * masking / np.maximum(4.0 * n_l * n_v, np.float32(1.0e-8)))[..., None]
    )
    specular = np.where((roughness >= MIRROR_ROUGHNESS)[..., None], specular, np.float32(0.0))
    reflected = (diffuse + specular) * n_l[..., None]
    return np.where((n_l <= 0.0)[..., None], np.float32(0.0), reflected)


def reflection_weight(
    base_color: F32, metalness: F32, roughness: F32, normal: F32, view: F32, light: F32
) -> F32:
    h = normalize(view + light)
    f = fresnel(reflectance_at_normal(base_color, metalness), dot(view, h))
    alpha = roughness * roughness
    lambda_view = smith_lambda(np.maximum(dot(normal, view), np.float32(1.0e-4)), alpha)
    lambda_light = smith_lambda(np.maximum(dot(normal, light), np.float32(1.0e-4)), alpha)
    seen = (1.0 + lambda_view) / (1.0 + lambda_view + lambda_light)
    return np.where((roughness < MIRROR_ROUGHNESS)[..., None], f, f * seen[..., None])


def diffuse_albedo(base_color: F32, metalness: F32, specular: F32) -> F32:
    dull = (np.float32(1.0) - metalness)[:, None]
    return dull * base_color * np.maximum(np.float32(0.0), np.float32(1.0) - specular)
