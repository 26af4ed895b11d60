// The words around the views.
export const shell = {
  tagline: {en: 'multi-head attention, happening', zh: '看得见的多头注意力'},
  views: {en: 'Views', zh: '页面'},
  skip: {en: 'Skip to the content', zh: '跳到正文'},
  'tab.walk': {en: 'Walk', zh: '走一遍'},
  'tab.questions': {en: 'Questions', zh: '问题'},
  'tab.data': {en: 'Your data', zh: '你的数据'},
  'tab.train': {en: 'Train', zh: '训练'},
  copyLink: {en: 'Copy link', zh: '复制链接'},
  linkCopied: {en: 'The link to this state is copied.', zh: '已复制指向当前状态的链接。'},
  linkHere: {en: 'The link to this state:', zh: '指向当前状态的链接：'},
  dark: {en: 'Dark', zh: '深色'},
  light: {en: 'Light', zh: '浅色'},
  computing: {en: 'Computing …', zh: '正在计算……'},
  footer: {
    en: 'Every number on this page was just computed by rapt, in your browser. Nothing leaves it.',
    zh: '本页的每个数字都是 rapt 刚刚在你的浏览器里算出来的，不会离开这里。',
  },
  shape: {en: 'shape', zh: '形状'},
  strides: {en: 'strides', zh: '步长'},
};
