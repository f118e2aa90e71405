"""Pieces of URDF as strangers write it."""

BODY = (
    '<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" '
    'ixy="0" ixz="0" iyz="0"/></inertial>'
)


def link(name, inside="", body=BODY):
    return f'<link name="{name}">{body}{inside}</link>'


def joint(name, parent, child, kind="revolute", inside="", axis="0 0 1"):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/>'
        f'<child link="{child}"/><axis xyz="{axis}"/>{inside}</joint>'
    )


def robot(*inside, name='name="r"'):
    return f"<robot {name}>{''.join(inside)}</robot>"


def visual(shape='<box size="1 1 1"/>', material=""):
    return f"<visual><geometry>{shape}</geometry>{material}</visual>"


def collision(shape='<box size="1 1 1"/>'):
    return f"<collision><geometry>{shape}</geometry></collision>"
